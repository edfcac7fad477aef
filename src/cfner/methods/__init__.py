"""The methods, one short file each, registered by name. Importing this package registers them all."""

from cfner.methods import cfner, extendner, finetune, joint, lucir, podnet, self_training
from cfner.methods.registry import Method, MethodParameters, StepFacts, create, method_names, register

__all__ = [
    "Method",
    "MethodParameters",
    "StepFacts",
    "cfner",
    "create",
    "extendner",
    "finetune",
    "joint",
    "lucir",
    "method_names",
    "podnet",
    "register",
    "self_training",
]
