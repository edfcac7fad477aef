"""Clinical narrative without any mention: whole sentences of one to three clauses, and tails of other ones.

Full of what a careless tagger falls for: ratios like dates, volumes like years, codes like log-in names, and
diseases, devices and tests that bear the names of people and towns. Slots as in the other templates.
"""

from __future__ import annotations

CLAUSES = """
{drug} {dose} {freq}
{lab}, {lab} and {lab}
the abdomen is soft with no {finding}
heart with a {ratio} systolic murmur at the apex
strength is {ratio} in the arms and {ratio} in the legs
pain {ratio} after {drug}
BP {bp}, HR {vital}, sats {vital}% on {small} litres
a {device} was placed without difficulty
he has a history of {finding}, {finding} and {eponym}
no evidence of {finding} on CT
she may need a {procedure} if {symptom} persists
{small} of {small} blood cultures grew gram positive cocci
seen by {role}, who will arrange follow-up
{code} was given at {qty} mg within the trial
platelets {longnum}, WBC {longnum}
{brace} to be worn for {duration}
denies {symptom}, {symptom} or {symptom}
the patient was advised to ask {role} about diet
{ratio} lymph nodes were positive
continue {drug}, stop {drug}, check {lab} in {duration}
the lesion measures {qty} x {qty} mm and is {qty} mm deep
on exam no {symptom}, reflexes {ratio}
{symptom} for {duration}, worse at night
{serology} was negative
took {qty} tablets of {drug} over {duration}
{service} consult for {finding}
march in place was steady and the {sign} was normal
wound clean, {qty} staples removed by {role}
CK peaked at {longnum} and fell to {longnum}
intake {volume} ml, output {volume} ml
weaned from {small} to {small} litres of oxygen
{procedure} showed {finding}
hospital course was marked by {symptom}, treated with {drug} {dose}
could work as tolerated, no lifting above {qty} pounds
the family understands the risk of {finding}
{code} stent {qty} mm deployed in the left anterior descending artery
there is a general weakness on the left, {ratio}
patient remains on {drug} with {lab}
{eponym} and {eponym} were considered
blood group checked twice by {role}
street drugs and alcohol are denied
it may be repeated in {duration} with {drug} {dose}
transfused {small} units, {lab} afterwards
lot {lot} of {drug} was given in the left arm
the doctor on call and {role} were told
a {occupation} would be at risk of such exposure
urine dip {ratio} protein, {lab}
{code} levels {qty}, {drug} levels {qty}
heparin {longnum} units, then {drug}
she was counselled like any {occupation} with {symptom}
return for {symptom} or a temperature above {temp}
no {eponym}, no {symptom}, {lab}
{ratio} nodes contained tumour
grip {ratio}, gait unsteady, tone {ratio}
the score was {ratio} on the scale of alertness
output {volume} ml overnight, drain {volume} ml
urine {volume} cc, stool {qty} cc
a murmur of {ratio} radiates to the neck
{code} withheld, {code} kit returned unused
pump model {code} runs at {qty} ml per hour
the {code} assay was {qty}, the {code} probe {qty}
ejection fraction {qty}%, previously {qty}%
oxygen turned down from {small} to {small} litres
step test {ratio}, balance {ratio}
protein {ratio} and blood {ratio} on dipstick
colony count {longnum}, platelets {longnum}
{drug} {dose} and {drug} {dose} {freq}
kit {lot} expired and was replaced
dressing changed by {role} after {duration}
{role} explained {drug} to the family
answered {ratio} questions correctly
{sign} positive, {eponym} suspected
{device} draining {qty} cc of clear fluid
{serology} {ratio}, {serology} pending
billed under code {cpt} and {cpt}
it is a general rule that no {occupation} lifts more than {qty} pounds
"""
