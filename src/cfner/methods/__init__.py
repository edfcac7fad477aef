"""The methods, one short file each, registered by name. Importing this package registers them all.

Everything that the author of a method needs is imported from here.
"""

import importlib
import pkgutil

from cfner.batches.step_data import IGNORE, StepData
from cfner.methods.causal import CausalMethod, CausalParameters
from cfner.methods.context import StepContext, Targets
from cfner.methods.method import DISTILS, FirstStep, Method, MethodParameters, Wrapper
from cfner.methods.old_mentions import OldMentions
from cfner.methods.pseudo_labels import with_pseudo_labels
from cfner.methods.registry import (
    create,
    method_class,
    method_names,
    register,
    summary,
    wrapper_class,
    wrapper_names,
)
from cfner.network.grow_experts import refuse_top, with_expert
from cfner.network.head import Head, HeadKind
from cfner.network.network import Network
from cfner.network.probes import AttentionMaps, Features, LayerSums, Probe, Reading
from cfner.objective.effects import with_causal_effect
from cfner.objective.groups import KEEP, REST, LabelGroups, group_targets, weights_of_rare
from cfner.objective.library import (
    ClassifyAll,
    ClassifyEntities,
    ClassifyReplayed,
    ClassifyWithMargin,
    Distil,
    DistilHardSelected,
    KeepFeatures,
    KeepLayers,
    RankOtherAboveNew,
    as_the_teacher,
    read_by_both,
)
from cfner.objective.losses import mean_or_zero
from cfner.objective.own_others import ClassifyGroups, KeepGroups
from cfner.objective.schedules import Curriculum, adaptive_weight
from cfner.objective.teacher import WordScores
from cfner.objective.terms import LabelRoles, Objective, Role, TeacherView, Term, TermInputs
from cfner.stream.labels import Grouping
from cfner.stream.step import Slice, Step

__all__ = [
    "DISTILS",
    "IGNORE",
    "KEEP",
    "REST",
    "AttentionMaps",
    "CausalMethod",
    "CausalParameters",
    "ClassifyAll",
    "ClassifyEntities",
    "ClassifyGroups",
    "ClassifyReplayed",
    "ClassifyWithMargin",
    "Curriculum",
    "Distil",
    "DistilHardSelected",
    "Features",
    "FirstStep",
    "Grouping",
    "Head",
    "HeadKind",
    "KeepFeatures",
    "KeepGroups",
    "KeepLayers",
    "LabelGroups",
    "LabelRoles",
    "LayerSums",
    "Method",
    "MethodParameters",
    "Network",
    "Objective",
    "OldMentions",
    "Probe",
    "RankOtherAboveNew",
    "Reading",
    "Role",
    "Slice",
    "Step",
    "StepContext",
    "StepData",
    "Targets",
    "TeacherView",
    "Term",
    "TermInputs",
    "WordScores",
    "Wrapper",
    "adaptive_weight",
    "as_the_teacher",
    "create",
    "group_targets",
    "mean_or_zero",
    "method_class",
    "method_names",
    "read_by_both",
    "refuse_top",
    "register",
    "summary",
    "weights_of_rare",
    "with_causal_effect",
    "with_expert",
    "with_pseudo_labels",
    "wrapper_class",
    "wrapper_names",
]

# every file in this folder may register methods: a new file is found without an edit here
for _file in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_file.name}")
