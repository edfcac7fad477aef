"""The sentences of the demo corpus, as data: one template per line, grouped by what the sentence does.

``{TYPE}`` or ``{TYPE:style}`` is a mention to be labelled; ``{lowercase}`` is a distractor that is not.
What counts as a mention, so that every one can be told from the sentence alone:

- PATIENT: the patient and the patient's relatives and friends. DOCTOR: anyone on the staff. Without titles.
- AGE: the number of an age only ("64", "70s"), never a dose, a duration or a laboratory value.
- DATE: calendar dates, years, months, days of the week; no clock times, no durations, no ratios.
- PROFESSION: the work of a patient or relative; not a role on the staff, nor a trade in general.
- HOSPITAL: a place of care by name (its wards are not). ORGANIZATION: any other named body.
- CITY, STATE, COUNTRY, STREET, ZIP: where places are; not inside the name of something else.
- MEDICALRECORD: record numbers. IDNUM: other numbers that identify a person, a sample or a visit.
- USERNAME: log-in names of the staff; codes of drugs and devices are none.
"""

from __future__ import annotations

# Each family: how often it is drawn (relative), and its templates.
FAMILIES: dict[str, tuple[float, str]] = {
    "admission": (
        13,
        """
{PATIENT} is a {AGE}-year-old {PROFESSION} who presented to {HOSPITAL:bare} on {DATE} with {symptom}.
Pt is a {AGE} yo {sex} w/ {finding}, transferred from {HOSPITAL:bare} {DATE} on {drug} {dose}.
{AGE} y/o {sex} with {symptom} for {duration}, admitted {DATE} under Dr. {DOCTOR:last}.
Mr. {PATIENT:last}, {AGE}, came in from {CITY} with {symptom} and a {lab}.
This {AGE} year old {sex} was brought to {HOSPITAL} by {relative} {PATIENT:first} with {symptom} x {qty}.
Admitted to {HOSPITAL:bare} {DATE}; discharged {DATE}; attending {DOCTOR}.
Mrs. {PATIENT:last} was first seen at {HOSPITAL} in {DATE:year} for {finding}, then aged {AGE}.
On {DATE} the patient, now {AGE}, returned to {HOSPITAL} because of {symptom} despite {qty} mg of {drug}.
{PATIENT} ({AGE}) fell on {DATE:weekday} and was taken to {HOSPITAL} with a suspected {finding}.
Transferred from {HOSPITAL} in {CITY}, {STATE}, where {he} had spent {qty} days with {finding}.
The patient is in {his} {AGE:decade} and was well until {DATE}, when {symptom} began.
ED arrival {DATE} from {HOSPITAL:short} via ambulance, {AGE}{sexletter}, {symptom} x {qty} hours, BP {bp}.
{PATIENT:last} was {AGE} when {finding} was found at {HOSPITAL}; the {procedure} followed in {DATE:year}.
Readmission: {AGE}-yr-old known to {DOCTOR:last} and to {HOSPITAL:short}, last here {DATE}.
Came to us {DATE:weekday} night from {CITY} by car, {symptom} {ratio} in severity, {qty} pack years.
Baby {PATIENT:last} was born at {HOSPITAL} on {DATE} weighing {qty} ounces.
""",
    ),
    "staff": (
        14,
        """
Dr. {DOCTOR:last} from {service} saw {PATIENT:last} on {DATE} and recommended {drug} {dose}.
{DOCTOR} performed the {procedure} at {HOSPITAL:bare} without complication.
Discussed with {DOCTOR:last} ({service}), who agrees with {drug} {dose} {freq}.
{PATIENT:last} asked that Dr. {DOCTOR:last} be told of the {finding}.
Case reviewed with attending {DOCTOR} and with the family of {PATIENT}.
{DOCTOR:last} will take over from {DOCTOR:last} on {DATE}.
Per {DOCTOR:last}, hold {drug} until {lab} is repeated on {DATE}.
Mr. {PATIENT:last} thanked Drs. {DOCTOR:last} and {DOCTOR:last} for their care.
{service} was consulted ({DOCTOR:last}) and {procedure} was done {DATE}.
The resident, {DOCTOR:first}, examined {PATIENT:first} and heard a {ratio} murmur.
Surgeon: {DOCTOR}. Assistant: {DOCTOR}. Patient: {PATIENT}.
{PATIENT:last} has been followed by {DOCTOR:last} since {DATE:year} for {finding}.
Nurse {DOCTOR:last} noticed that {PATIENT:last} was pale and paged {DOCTOR:last}.
Intubated by {DOCTOR:last} of anaesthesia, {qty} cm at the teeth.
I have seen and examined {PATIENT:last} together with Dr. {DOCTOR:last} and agree with the note of {DATE}.
{PATIENT:last} refused the {procedure} that {DOCTOR:last} had offered.
Seen today by {DOCTOR}, NP, at the {CITY} office.
Thank you, {DOCTOR:first}, for sending {PATIENT:last} to our {service} clinic.
PCP is {DOCTOR} in {CITY}; cardiologist is {DOCTOR:last} at {HOSPITAL}.
{PATIENT:last} saw {DOCTOR:last} in clinic; {DOCTOR:last} stopped the {drug}.
Primary surgeon {DOCTOR}; patient {PATIENT}; anaesthetist {DOCTOR}.
Physician: {DOCTOR} Referring: {DOCTOR} Patient name: {PATIENT}
{DOCTOR:last} and {DOCTOR:last} operated; {PATIENT:last} did well.
{PATIENT:last} was examined by {DOCTOR:last}, who found {finding}.
GP {DOCTOR}, {CITY}; neurologist {DOCTOR:last}, {HOSPITAL}.
Patient {PATIENT:last} was told by {DOCTOR:last} to stop {drug}.
""",
    ),
    "header": (
        13,
        """
Name: {PATIENT:reversed} MRN: {MEDICALRECORD} DOB: {DATE}
Patient: {PATIENT} Unit No: {MEDICALRECORD} Date: {DATE} Attending: {DOCTOR}
MR # {MEDICALRECORD}, account # {IDNUM}, admitted {DATE}
{HOSPITAL} Discharge Summary Patient {PATIENT} Record {MEDICALRECORD} Visit {IDNUM}
Record number {MEDICALRECORD}. Specimen {IDNUM}. Collected {DATE}. Physician {DOCTOR:last}.
{PATIENT:reversed} chart {MEDICALRECORD} {HOSPITAL:short} {DATE} {service}
Acct: {IDNUM} Med Rec: {MEDICALRECORD} Age: {AGE} Phone: {PHONE}
Accession {IDNUM} received {DATE} from {HOSPITAL}; chart {MEDICALRECORD}.
cc: {DOCTOR}, {HOSPITAL}, {STREET}, {CITY}, {STATE:abbrev} {ZIP}
RE: {PATIENT} / chart no. {MEDICALRECORD} / seen {DATE}
Patient ID {IDNUM}; hospital record {MEDICALRECORD}; age {AGE}; ordering MD {DOCTOR:last}
{DATE} {PATIENT} MRN {MEDICALRECORD} SSN {IDNUM}
Case number {IDNUM}, pathology of {DATE}, {qty} slides, for Dr. {DOCTOR:last}.
Encounter: {IDNUM} | Chart: {MEDICALRECORD} | Facility: {HOSPITAL} | Provider: {DOCTOR}
Please pull the old chart {MEDICALRECORD} of {PATIENT:last} from {HOSPITAL} before {DATE}.
Medical record {MEDICALRECORD} was merged with {MEDICALRECORD} on {DATE}.
Phone {PHONE} Age {AGE} Account {IDNUM} Chart {MEDICALRECORD}
MRN {MEDICALRECORD} / acct {IDNUM} / tel {PHONE} / zip {ZIP}
Account number: {IDNUM} Name: {PATIENT} Telephone: {PHONE}
Record: {MEDICALRECORD} Order: {IDNUM} Admit date: {DATE} MD: {DOCTOR}
Unit number {MEDICALRECORD} Episode {IDNUM} {HOSPITAL} {DATE}
Age {AGE}; MD {DOCTOR}; med. rec. {MEDICALRECORD}; patient ID {IDNUM}
""",
    ),
    "identifiers": (
        5,
        """
Insurance policy {IDNUM} with {ORGANIZATION} was confirmed on {DATE}.
Specimen number {IDNUM} showed {finding}; lot {lot} of the stain was used.
His driving licence number is {IDNUM} and his record with us is {MEDICALRECORD}.
Member ID {IDNUM}, group {ORGANIZATION}, copay {qty} dollars.
Cultures (sample {IDNUM}) grew {longnum} colonies; {drug} was begun on {DATE}.
The old record, {MEDICALRECORD}, belongs to another {PATIENT:last}; ours is {MEDICALRECORD}.
Claim {IDNUM} for code {cpt} was denied by {ORGANIZATION}.
Study subject {IDNUM} received {code} {dose} at {HOSPITAL:short} on {DATE}.
The wristband said record {MEDICALRECORD}, but the platelets of {longnum} were from sample {IDNUM}.
Dr. {DOCTOR:last} signed the form with licence {IDNUM}.
Requisition {IDNUM}: WBC {longnum}, haemoglobin {qty}, see also chart {MEDICALRECORD}.
Social security {IDNUM} checked against the file {MEDICALRECORD} by {role}.
Dictated for chart {MEDICALRECORD}, job {IDNUM}, {qty} lines.
Visit ID is {IDNUM}; the callback number is {PHONE}; the CK was {longnum}.
Biopsy {IDNUM} of {DATE} was read by {DOCTOR:last} as {finding}, {ratio} nodes positive.
Sample {IDNUM}: platelets {longnum}, potassium {qty}, chart number {MEDICALRECORD}.
Requisition no. {IDNUM} for {code}, sent by {DOCTOR:last}.
Lot {lot} was given to subject {IDNUM}; WBC {longnum}; record {MEDICALRECORD}.
Tube {IDNUM} for {PATIENT:last}, CK {longnum}, {lab}.
""",
    ),
    "contact": (
        7,
        """
Please call {DOCTOR:last} at {PHONE} if {symptom} recurs.
{relative} {PATIENT:first} can be reached at {PHONE}.
Tel: {PHONE} Fax: {PHONE} {HOSPITAL}
Dr. {DOCTOR:last}, pager {PHONE}, aware of {lab}.
Emergency contact: {PATIENT} ({relative}), {PHONE}
Return to the ED or ring {PHONE} for {symptom} or temperature above {temp}.
{service} on call {PHONE} was paged twice about record {MEDICALRECORD}.
Pharmacy at {ORGANIZATION} ({PHONE}) has the script for {drug}, {qty} tablets.
Left a message on {PHONE} for {PATIENT:last} that the {lab} was back.
Next of kin {PATIENT}, {STREET}, {CITY}; home phone {PHONE}.
Questions? Beeper {PHONE}, {DOCTOR}, {service}.
Her home number is {PHONE}, her chart {MEDICALRECORD}, her weight {qty} kg.
Dial {PHONE} and ask for {DOCTOR:first} in {service}.
We phoned {HOSPITAL:short} ({PHONE}) for the results of {DATE}.
Contact numbers: {PHONE} (work, {ORGANIZATION}), {PHONE} (cell).
Follow up by telephone, {PHONE}, on {DATE:weekday} with {DOCTOR:last}.
Fax {PHONE}, telephone {PHONE}, {ORGANIZATION}
Phone: {PHONE} Pager: {PHONE} {DOCTOR}
Call the {service} desk on {PHONE} about chart {MEDICALRECORD}.
{PATIENT:last} may be phoned on {PHONE} at work or {PHONE} at home.
The fellow on call, {PHONE}, knows of visit {IDNUM}.
""",
    ),
    "address": (
        6,
        """
Lives at {STREET}, {CITY}, {STATE:abbrev} {ZIP} with {his} {relative}.
Address: {STREET} {CITY} {STATE} {ZIP} Phone: {PHONE}
{PATIENT} moved from {CITY} to {STREET} in {DATE:year}.
Home visits at {STREET} by {role} every {qty} days.
Resides alone in {CITY}, {STATE}, on {STREET}; {qty} steps to the door.
Mail results to {PATIENT:last}, {STREET}, {CITY} {ZIP}.
{CITY} {STATE:abbrev} {ZIP}
Discharged to a rehab near {STREET} in {CITY}, {duration} expected.
Zip code {ZIP}, town of {CITY}, no home phone, chart {MEDICALRECORD}.
The family of {PATIENT:last} lives off {STREET}, {qty} miles from {HOSPITAL}.
Visiting nurse will go to {STREET} ({ZIP}) from {DATE}.
Found down on {STREET} in {CITY} by {relative} {PATIENT:first}, glucose {qty}.
New address {STREET}, postal code {ZIP}, effective {DATE}.
Mr. {PATIENT:last} gave his address as {STREET}, {STATE:abbrev} {ZIP}, but the card says {CITY}.
{STREET}, {CITY}, {STATE:abbrev} {ZIP}
c/o {PATIENT}, {STREET}, {CITY} {STATE:abbrev} {ZIP}
{HOSPITAL}, {CITY}, {STATE} {ZIP}
Home: {STREET} (zip {ZIP}); home phone {PHONE}.
{CITY}, {STATE} {ZIP}, {relative} {PATIENT:first}
Oxygen is delivered to {STREET}, {ZIP} {CITY}.
Postal code {ZIP} in {STATE}; {STREET} since {DATE:year}.
""",
    ),
    "social": (
        10,
        """
Social history: retired {PROFESSION}, lives in {CITY} with {relative}, {qty} cigarettes daily.
{he} works as a {PROFESSION} for {ORGANIZATION} and drinks {qty} beers a week.
SH: {PROFESSION}, married, {small} children, no tobacco.
Mr. {PATIENT:last} was a {PROFESSION} in {CITY} until {DATE:year}.
Originally from {COUNTRY}, came to {STATE} in {DATE:year}, employed at {ORGANIZATION:bare}.
Occupation: {PROFESSION}. Employer: {ORGANIZATION:bare}. Exposure to asbestos for {duration}.
Works nights at {ORGANIZATION:bare}; sleeps {small} hours.
The patient is a former {PROFESSION} and volunteers with {ORGANIZATION}.
Widowed; {his} {relative} {PATIENT:first} is a {PROFESSION} in {STATE}.
Divorced {PROFESSION}, grew up in {CITY}, {STATE}, quit smoking {DATE:year}.
Born in {COUNTRY}; speaks little English; {role} helped with the interview.
Laid off by {ORGANIZATION:bare} in {DATE}, has been drinking since, {qty} drinks a day.
Currently studying to be a {PROFESSION} at {ORGANIZATION}.
{he} is on disability, formerly {PROFESSION}, denies illicit drugs.
Employed: {ORGANIZATION} ({CITY}), {PROFESSION}, {qty} hours a week.
{PATIENT:first} is a {AGE}-year-old {PROFESSION} who recently travelled to {COUNTRY}.
Served with {ORGANIZATION} before becoming a {PROFESSION}; {ratio} on the alcohol screen.
Lives with {relative}, a {PROFESSION}, in an apartment in {CITY}.
Employed by {ORGANIZATION} in {CITY} as a {PROFESSION}, {qty} hours weekly.
Job: {PROFESSION} ({ORGANIZATION}, {CITY}); tobacco {qty} pack years.
Hx: {PROFESSION}, divorced, {small} grandchildren, lives in {CITY}.
{PROFESSION} by trade, now retired in {CITY}.
""",
    ),
    "family": (
        5,
        """
FH: mother died at {AGE} of {finding}, father alive at {AGE} with {finding}.
{his} brother {PATIENT:first}, {AGE}, had a {procedure} at {HOSPITAL}.
{his} {relative}, {PATIENT}, is the health care proxy and lives in {STATE}.
Sister with {finding} at age {AGE}; {qty} cousins healthy.
Daughter {PATIENT:first} ({AGE}) drove {his} parent in from {CITY}.
Father was a {PROFESSION} and died of {finding} in {DATE:year}, aged {AGE}.
Grandmother from {COUNTRY} had {finding} in her {AGE:decade}.
Family meeting {DATE} with {relative} {PATIENT:first}, Dr. {DOCTOR:last} and {role}.
Two sons, {PATIENT:first} and {PATIENT:first}, both well, {AGE:young} and {AGE:young}.
Family history: {finding} in an uncle at {AGE}, smoking {qty} pack years.
The mother, a {PROFESSION} in {CITY}, was {AGE:young} at delivery.
Parents emigrated from {COUNTRY}; father had {finding} at {AGE}, lipase {qty}.
{relative} {PATIENT} says that {he} has had {symptom} since {DATE:weekday}.
Menarche at {AGE:young}, first child at {AGE:young}, {small} pregnancies.
""",
    ),
    "transfer": (
        9,
        """
Discharged to {HOSPITAL:bare} on {DATE} on {drug} {dose} {freq}.
Records from {HOSPITAL} show {finding} in {DATE:year}.
{procedure} at {HOSPITAL:short} {DATE}: {finding}, EF {qty}%.
Will be sent to {HOSPITAL} in {CITY} for {procedure}.
Outside films from {HOSPITAL} were read by {DOCTOR:last} as {finding}.
Follow-up with Dr. {DOCTOR:last} at {HOSPITAL} on {DATE} at {small}:30.
Prior admissions: {HOSPITAL} {DATE:year}, {HOSPITAL:short} {DATE:year}.
{PATIENT:last} would rather be treated at {HOSPITAL:bare}, close to {CITY}.
{HOSPITAL:short} MICU accepted {PATIENT:last}; transport left for {CITY} at noon.
Bed at {HOSPITAL:bare} available {DATE:weekday}; {role} informed {relative} {PATIENT:first}.
{he} left {HOSPITAL} against advice {DATE} and was found in {CITY}.
Had {procedure} in {DATE} at {HOSPITAL}, then {duration} of rehab at {HOSPITAL}.
Accepted by {DOCTOR:last} at {HOSPITAL:short} for {procedure}, {lab}.
CT done at {HOSPITAL} ({DATE}) vs ours ({DATE}): lesion now {qty} mm.
The {service} team of {HOSPITAL} called about {PATIENT:last} on {DATE}.
Seen at {HOSPITAL:short} for {symptom} {DATE}, given {drug}, sent home.
""",
    ),
    "events": (
        12,
        """
{DATE}: {lab}, {drug} increased to {dose}.
On {DATE} {PATIENT:last} had {symptom}, {ratio} in intensity, relieved by {drug}.
Last {procedure} {DATE}; next due {DATE:year}.
S/p {procedure} {DATE}, {finding} since.
{drug} was started in {DATE} and stopped on {DATE} after {symptom}.
Stable from {DATE} to {DATE} on {drug} {dose}, {lab}.
Echo {DATE} EF {qty}, echo {DATE} EF {qty}.
Strength {ratio} on {DATE}, {ratio} on {DATE}.
{finding} diagnosed {DATE:year}, {procedure} {DATE:year}, recurrence {DATE}.
Sutures out {DATE:weekday}; {drug} until {DATE}.
Urine output {volume} cc on {DATE}, {volume} cc the day after.
Seen {DATE} w {symptom}, again {DATE}, better on {DATE}.
By {DATE:weekday} {PATIENT:last} was walking {qty} feet and {lab}.
Vaccinated {DATE}, lot {lot}, left arm.
{drug} {dose} since {DATE:year}, {ratio} pain at rest.
Labs of {DATE}: {lab}, {lab}, murmur {ratio}.
Mammogram in {DATE} normal; colonoscopy in {DATE:year} with {small} polyps.
EF {qty} on {DATE} and {qty} on {DATE}.
Drain output {volume} ml {DATE}, {volume} ml {DATE}.
Grip {ratio} {DATE}; gait {ratio} {DATE}.
{procedure} {DATE} (EF {qty}), {procedure} {DATE:year} (EF {qty}).
Pain {ratio} on {DATE:weekday}, was {ratio} on {DATE}.
""",
    ),
    "footer": (
        6,
        """
Dictated by {DOCTOR}, {DATE}, transcribed by {USERNAME}
{DOCTOR:initials}/{USERNAME} D: {DATE} T: {DATE} job {IDNUM}
Electronically signed by {DOCTOR} ({USERNAME}) on {DATE}
DD: {DATE} DT: {DATE} {DOCTOR:initials} typist {USERNAME}
Signed: {DOCTOR}, M.D., {HOSPITAL}, {DATE}
Entered by {USERNAME} at {HOSPITAL:short}, verified {DATE}, pager {PHONE}
Order placed by user {USERNAME}: {drug} {dose}
{DOCTOR} MD {service} {DATE} pager {PHONE}
Note opened under log-in {USERNAME}, {DOCTOR:last} to co-sign.
cc: {DOCTOR}; {DOCTOR}; {HOSPITAL} {service}
Attending: {DOCTOR} Dictator: {DOCTOR} Doc ID: {IDNUM} Edited: {USERNAME}
eScription document: {IDNUM} {USERNAME} DD: {DATE}
Sincerely, {DOCTOR}, {service}, {HOSPITAL}, {CITY}
Account {USERNAME} changed the order for {code} to {code} on {DATE}.
Message to {USERNAME}: {PATIENT:last} needs {drug} {dose}, thanks, {DOCTOR:first}
Edited by {USERNAME}, document {IDNUM}, author {DOCTOR}
Typed {DATE} by {USERNAME} for {DOCTOR:initials}
User {USERNAME} released the {code} kit for subject {IDNUM}.
Dictator {DOCTOR} Transcriptionist {USERNAME} Date {DATE}
""",
    ),
    "travel": (
        3,
        """
Returned from {COUNTRY} on {DATE} with {symptom}.
Travelled through {COUNTRY} and {COUNTRY} for {duration}, bitten by insects.
{PATIENT:last} was vaccinated in {COUNTRY} as a child, {qty} doses.
Flew in from {COUNTRY} to see Dr. {DOCTOR:last} at {HOSPITAL}.
Has relatives in {COUNTRY} and a house in {STATE}; no pets.
Winters in {STATE}, summers in {CITY}.
Came from {COUNTRY} at age {AGE:young}, now a {PROFESSION} in {CITY}.
Recent trip to {STATE} with {relative}, tick bite {DATE}, {serology} {ratio}.
Moved here from {STATE} in {DATE:year} to be near {relative} {PATIENT:first}.
Immigrant from {COUNTRY}, works for {ORGANIZATION}, PPD {qty} mm.
Adopted from {COUNTRY} at {AGE:young}, raised in {CITY}, {STATE}.
{he} is flying home to {COUNTRY} on {DATE:weekday}; {drug} for {duration}.
""",
    ),
    "bodies": (
        4,
        """
Referred to {ORGANIZATION} for housing by {role}, {DATE}.
Covered by {ORGANIZATION}; home oxygen from {ORGANIZATION}.
{ORGANIZATION} was informed of the case of {PATIENT:last} on {DATE}.
Services: {ORGANIZATION}, meals, {qty} visits a week.
{PATIENT:last} lost his job at {ORGANIZATION:bare} and his cover with it.
Letter to {ORGANIZATION} about the fitness of this {PROFESSION} to work.
{HOSPITAL} and {ORGANIZATION} share the cost of {drug}.
Enrolled in a trial of {code} paid for by {ORGANIZATION}, subject {IDNUM}.
The injury happened at {ORGANIZATION} in {CITY}, where {he} is a {PROFESSION}.
Disability papers for {ORGANIZATION} were signed by {DOCTOR:last}.
Sent by {ORGANIZATION} for a {procedure} at {HOSPITAL:short}.
Attends meetings of {ORGANIZATION} in {CITY} on {DATE:weekday}s.
""",
    ),
    "brief": (
        9,
        """
{PATIENT:last} slept well, {lab}, no {symptom}.
{DOCTOR:last} to see in am, {drug} {dose}.
{PATIENT:first} tolerated the {procedure} well.
{DOCTOR:last} reviewed the films: {finding}.
D/w {DOCTOR:last}.
Ms. {PATIENT:last} denies {symptom}.
{PATIENT:last} complains of {symptom}, rated {ratio}.
Will ask {DOCTOR:last} about the {eponym}.
Plan: {drug} {dose}, {device}, {DOCTOR:last} aware.
{PATIENT:last} ate {qty}% of lunch and walked with {role}.
{DOCTOR:last} placed a {device} under local anaesthesia.
Consent from {PATIENT:last} obtained by {DOCTOR:last}.
{PATIENT:last} has {eponym}, not {finding}, says {DOCTOR:last}.
Age {AGE}, weight {vital}, pulse {vital}.
{PATIENT:last} turned {AGE} on {DATE:weekday}; pulse {vital}, sats {vital}%.
{DOCTOR:last} lowered {drug} since {PATIENT:last} was drowsy.
{AGE}{sexletter} c {eponym}, {lab}, {ratio} strength.
{DATE} {DOCTOR:last}: {device} removed, {lab}.
{PATIENT:last} reports {symptom}, worst {ratio}.
{PATIENT:first} did well after {procedure}.
{DOCTOR:last} inserted the {device} with ultrasound.
{PATIENT:last} vomited twice and was given {drug}.
{DOCTOR:last} advised {drug}; {PATIENT:last} declined.
{DOCTOR:last} sutured the wound and ordered {drug}.
{PATIENT:last} was anxious, pulse {vital}, and asked for {relative} {PATIENT:first}.
""",
    ),
}
