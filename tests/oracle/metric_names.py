"""Every class and function of TorchMetrics with its arguments, read from its source without running
it: many can be imported only beside libraries that recording does not need."""

import ast
import pathlib

PACKAGES = ("aggregation", "audio", "classification", "clustering", "detection", "image",
            "multimodal", "nominal", "regression", "retrieval", "segmentation", "shape", "text",
            "video", "wrappers")


def modules_below(folder):
    return sorted(path for path in folder.rglob("*.py") if not path.name.startswith("_"))


def exported(path):
    """The names of `__all__`, those that are added under a condition too."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(node, (ast.Assign, ast.AugAssign)) and getattr(target, "id", "") == "__all__":
            names += ast.literal_eval(node.value)
    return names


def arguments_of(function):
    every = [*function.args.posonlyargs, *function.args.args]
    return [one.arg for one in every if one.arg not in ("self", "cls")]


def constructor_of(node, classes):
    """Its own `__new__` or `__init__`, else that of the first base that has one."""
    for kind in ("__new__", "__init__"):
        for member in node.body:
            if isinstance(member, ast.FunctionDef) and member.name == kind:
                return arguments_of(member)
    for base in node.bases:
        if getattr(base, "id", "") in classes:
            return constructor_of(classes[base.id], classes)
    return []


def defined_below(folder, kind):
    """The last definition counts: aggregation comes before wrappers."""
    found = {}
    for path in modules_below(folder):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, kind):
                found[node.name] = node
    return found


def names(home):
    """{"classes": [[name, package, arguments]..], "functions": the same}, in order of names."""
    home = pathlib.Path(home)
    every_class = defined_below(home, ast.ClassDef)
    every_function = defined_below(home / "functional", ast.FunctionDef)
    classes, functions = {"MetricCollection": ["collections", ["metrics"]]}, {}
    for package in PACKAGES:
        at = home / package / "__init__.py"
        listed = exported(at) if at.exists() else []
        if package == "aggregation":
            listed = [n for n in exported(home / "__init__.py") if n in AGGREGATION]
        for name in listed:
            if name in every_class and not name.startswith("_"):
                classes[name] = [package, constructor_of(every_class[name], every_class)]
    for package in (*PACKAGES, "pairwise"):
        at = home / "functional" / package / "__init__.py"
        for name in exported(at) if at.exists() else []:
            if name in every_function:
                functions[name] = [package, arguments_of(every_function[name])]
    return {kind: [[name, *made[name]] for name in sorted(made)]
            for kind, made in (("classes", classes), ("functions", functions))}


AGGREGATION = ("CatMetric", "MaxMetric", "MeanMetric", "MinMetric", "RunningMean", "RunningSum",
               "SumMetric")
