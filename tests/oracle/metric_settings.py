"""Which metrics are recorded on which data: one setting a file of tests/data/oracle/metrics.

A rank's turns are `update` or `forward` with a batch (the arguments of TorchMetrics' update, lists
of floats or whole numbers), `compute` and `reset`. What forward and compute give is recorded.
"""

import random


def numbers(draw, count, digits=3):
    return [round(draw.random(), digits) for _ in range(count)]


def distinct(draw, count):
    """Scores in (0, 1) without ties."""
    return [n / 1000 for n in draw.sample(range(1, 1000), count)]


def binary(draw, count):
    return {"preds": numbers(draw, count), "target": [draw.randrange(2) for _ in range(count)]}


def binary_labels(draw, count):
    return {key: [draw.randrange(2) for _ in range(count)] for key in ("preds", "target")}


def logits(draw, count):
    made = binary(draw, count)
    return {**made, "preds": [round(6 * p - 3, 3) for p in made["preds"]]}


def classes(draw, count):
    return {key: [draw.randrange(4) for _ in range(count)] for key in ("preds", "target")}


def class_scores(draw, count):
    rows = []
    for _ in range(count):
        row = [draw.random() + 0.01 for _ in range(4)]
        rows.append([round(n / sum(row), 4) for n in row])
    return {"preds": rows, "target": [draw.randrange(4) for _ in range(count)]}


def class_logits(draw, count):
    made = class_scores(draw, count)
    return {**made, "preds": [[round(8 * n - 2, 3) for n in row] for row in made["preds"]]}


def multilabel(draw, count):
    return {
        "preds": [numbers(draw, 3) for _ in range(count)],
        "target": [[draw.randrange(2) for _ in range(3)] for _ in range(count)],
    }


def regression(draw, count):
    target = [round(4 * draw.random() - 1, 3) for _ in range(count)]
    return {"preds": [round(t + draw.random() - 0.5, 3) for t in target], "target": target}


def two_outputs(draw, count):
    made = [regression(draw, 2) for _ in range(count)]
    return {key: [m[key] for m in made] for key in ("preds", "target")}


def words(draw, count):
    return {
        "preds": [[[round(4 * draw.random() - 2, 3) for _ in range(5)] for _ in range(3)]
                  for _ in range(count)],
        "target": [[draw.randrange(5) for _ in range(3)] for _ in range(count)],
    }


def values(draw, count):
    return {"value": [round(8 * draw.random() - 4, 3) for _ in range(count)]}


def weighted(draw, count):
    return {**values(draw, count), "weight": [round(draw.random() + 0.5, 3) for _ in range(count)]}


def queries(draw, count):
    return {
        "preds": distinct(draw, count),
        "target": [draw.randrange(2) for _ in range(count)],
        "indexes": [draw.randrange(3) for _ in range(count)],
    }


def shards(name, data, counts, turn="update"):
    """One turn a batch; `counts[rank]` lists the sizes of its batches. Then compute."""
    draw = random.Random(name)
    return [
        [[turn, data(draw, count)] for count in of_rank] + [["compute"]] for of_rank in counts
    ]


def setting(name, metric, data, counts, turns=None, turn="update", fails=False, **arguments):
    made = {
        "name": name,
        "world_size": len(counts),
        "metric": metric,
        "arguments": arguments,
        "turns": turns or shards(name, data, counts, turn),
    }
    return {**made, "fails": True, "timeout_s": 4} if fails else made


ONE = [[6, 5]]
EVEN = [[5, 4], [5, 4]]
UNEVEN = [[3, 6], [7], [2, 2, 4]]
# Rank 1 has no samples.
EMPTY = [[5, 3], [], [4]]

CLASSES = {"num_classes": 4}
LABELS = {"num_labels": 3}


def spread(name, metric, data, sharding=(("one", ONE), ("even", EVEN), ("uneven", UNEVEN),
                                         ("empty", EMPTY)), **arguments):
    return [
        setting(f"{name}-{what}", metric, data, counts, **arguments) for what, counts in sharding
    ]


TWO = (("even", EVEN), ("uneven", UNEVEN))
COUNTED = ("Accuracy", "Precision", "Recall", "F1Score", "StatScores")

METRIC_SETTINGS = [
    *spread("binary-f1", "BinaryF1Score", binary),
    *(made for kind in COUNTED if kind != "F1Score"
      for made in spread(f"binary-{kind.lower()}", f"Binary{kind}", binary, TWO)),
    *spread("binary-specificity", "BinarySpecificity", binary, TWO),
    *spread("binary-fbeta", "BinaryFBetaScore", binary, TWO, beta=2.0, threshold=0.3),
    *spread("binary-f1-labels", "BinaryF1Score", binary_labels, TWO),
    *spread("binary-f1-logits", "BinaryF1Score", logits, TWO),
    *spread("binary-precision-of-none", "BinaryPrecision", binary, TWO, threshold=1.0,
            zero_division=1),
    *spread("binary-confusion", "BinaryConfusionMatrix", binary, TWO, normalize="true"),
    *(made for kind in COUNTED for average in ("micro", "macro", "weighted", "none")
      for made in spread(f"multiclass-{kind.lower()}-{average}", f"Multiclass{kind}", classes,
                         (("uneven", UNEVEN),), average=average, **CLASSES)),
    *spread("multiclass-accuracy-scores", "MulticlassAccuracy", class_scores, **CLASSES),
    *spread("multiclass-f1-ignoring", "MulticlassF1Score", classes, TWO, ignore_index=2, **CLASSES),
    *spread("multiclass-fbeta", "MulticlassFBetaScore", classes, TWO, beta=0.5, **CLASSES),
    *spread("multiclass-confusion", "MulticlassConfusionMatrix", classes, **CLASSES),
    *spread("multiclass-confusion-by-prediction", "MulticlassConfusionMatrix", classes, TWO,
            normalize="pred", **CLASSES),
    *(made for kind in COUNTED for average in ("micro", "macro", "weighted", "none")
      for made in spread(f"multilabel-{kind.lower()}-{average}", f"Multilabel{kind}", multilabel,
                         (("uneven", UNEVEN),), average=average, **LABELS)),
    *spread("multilabel-fbeta", "MultilabelFBetaScore", multilabel, TWO, beta=2.0, **LABELS),
    *spread("multilabel-confusion", "MultilabelConfusionMatrix", multilabel, TWO, normalize="all",
            **LABELS),
    *spread("auroc", "BinaryAUROC", binary, (("one", ONE), *TWO)),
    *spread("auroc-logits", "BinaryAUROC", logits, TWO),
    *spread("auroc-partial", "BinaryAUROC", binary, TWO, max_fpr=0.4),
    *spread("auroc-binned", "BinaryAUROC", binary, thresholds=5),
    *spread("auroc-listed-thresholds", "BinaryAUROC", binary, TWO, thresholds=[0.0, 0.3, 0.6, 1.0]),
    *spread("average-precision", "BinaryAveragePrecision", binary, (("one", ONE), *TWO)),
    *spread("average-precision-binned", "BinaryAveragePrecision", binary, thresholds=11),
    *(made for average in ("macro", "weighted", "none") for kind in ("AUROC", "AveragePrecision")
      for made in spread(f"multiclass-{kind.lower()}-{average}", f"Multiclass{kind}", class_scores,
                         TWO, average=average, **CLASSES)),
    # Samples of the class that is ignored are gone: it has no positives left.
    *(made for average in ("macro", "none") for kind in ("AUROC", "AveragePrecision")
      for made in spread(f"multiclass-{kind.lower()}-{average}-without-a-class",
                         f"Multiclass{kind}", class_scores, (("uneven", UNEVEN),), average=average,
                         ignore_index=0, **CLASSES)),
    *spread("multiclass-auroc-logits", "MulticlassAUROC", class_logits, TWO, **CLASSES),
    *spread("multiclass-auroc-binned", "MulticlassAUROC", class_scores, thresholds=7, **CLASSES),
    *spread("multiclass-average-precision-binned", "MulticlassAveragePrecision", class_scores,
            thresholds=7, **CLASSES),
    # The classes that choose by `task`, with arguments that another task takes.
    *(made for kind in (*COUNTED, "FBetaScore", "ConfusionMatrix")
      for made in spread(f"task-multiclass-{kind.lower()}", kind, classes, (("uneven", UNEVEN),),
                         task="multiclass", **CLASSES)),
    *(made for kind in ("AUROC", "AveragePrecision")
      for made in spread(f"task-multiclass-{kind.lower()}", kind, class_scores, (("even", EVEN),),
                         task="multiclass", **CLASSES)),
    *(made for kind in (*COUNTED, "Specificity")
      for made in spread(f"task-binary-{kind.lower()}", kind, binary, (("uneven", UNEVEN),),
                         task="binary", threshold=0.3, **CLASSES)),
    *spread("task-binary-auroc", "AUROC", binary, (("even", EVEN),), task="binary", **CLASSES),
    *spread("task-multilabel-f1score", "F1Score", multilabel, (("uneven", UNEVEN),),
            task="multilabel", **LABELS),
    *spread("task-multiclass-macro-f1", "F1Score", classes, (("uneven", UNEVEN),),
            task="multiclass", average="macro", **CLASSES),
    *spread("mse", "MeanSquaredError", regression),
    *spread("rmse", "MeanSquaredError", regression, squared=False),
    *spread("mse-of-two-outputs", "MeanSquaredError", two_outputs, TWO, num_outputs=2),
    *spread("mae", "MeanAbsoluteError", regression),
    *spread("r2", "R2Score", regression),
    *spread("r2-adjusted", "R2Score", regression, TWO, adjusted=2),
    *spread("pearson", "PearsonCorrCoef", regression),
    *spread("pearson-of-two-outputs", "PearsonCorrCoef", two_outputs, TWO, num_outputs=2),
    *spread("perplexity", "Perplexity", words),
    *spread("perplexity-ignoring", "Perplexity", words, TWO, ignore_index=3),
    *(made for kind in ("Mean", "Sum", "Min", "Max", "Cat")
      for made in spread(f"{kind.lower()}-metric", f"{kind}Metric", values)),
    *spread("mean-metric-weighted", "MeanMetric", weighted),
    *spread("map", "RetrievalMAP", queries, (("one", ONE), ("even", EVEN),
                                             ("other-sizes", [[3, 6], [7, 2], [4, 4]]))),
    *(made for action in ("neg", "pos", "skip")
      for made in spread(f"map-empty-{action}", "RetrievalMAP", queries, (("even", [[3, 3], [2, 3]]),),
                         empty_target_action=action)),
    *spread("map-top-2", "RetrievalMAP", queries, (("even", EVEN),), top_k=2),
    # What does not come to an end, or to a right one.
    setting("map-uneven-updates", "RetrievalMAP", queries, [[3, 3], [4]], fails=True),
    setting("auroc-on-an-empty-rank", "BinaryAUROC", binary, EMPTY, fails=True),
    setting("compute-on-one-rank", "BinaryF1Score", binary, [[4], [4]], fails=True,
            turns=[[["update", binary(random.Random(1), 4)], ["compute"]],
                   [["update", binary(random.Random(2), 4)]]]),
    # The life cycle.
    *(setting(f"forward-{metric}", metric, data, EVEN, turn="forward", **arguments)
      for metric, data, arguments in (
          ("BinaryF1Score", binary, {}), ("BinaryAUROC", binary, {}),
          ("MeanMetric", values, {}), ("MaxMetric", values, {}),
          ("PearsonCorrCoef", regression, {}), ("RetrievalMAP", queries, {}),
          ("CatMetric", values, {}))),
    *(setting(f"forward-synchronised-{metric}", metric, data, EVEN, turn="forward",
              dist_sync_on_step=True)
      for metric, data in (("BinaryF1Score", binary), ("MeanSquaredError", regression),
                           ("BinaryAUROC", binary))),
    setting("computed-locally", "BinaryF1Score", binary, UNEVEN, sync_on_compute=False),
    *(setting(name, "SumMetric", values, [[2], [2]], turns=[turns, turns], **arguments)
      for name, turns, arguments in (
          ("computed-twice", [["update", {"value": [1.0, 2.5]}], ["compute"], ["compute"]], {}),
          ("computed-without-cache",
           [["update", {"value": [1.0, 2.5]}], ["compute"], ["compute"]],
           {"compute_with_cache": False}),
          ("updated-after-compute",
           [["update", {"value": [1.0]}], ["compute"], ["update", {"value": [3.0]}],
            ["compute"]], {}),
          ("reset-between",
           [["update", {"value": [1.0]}], ["compute"], ["reset"], ["update", {"value": [4.0]}],
            ["compute"]], {}))),
    # Collections: [class, arguments] by name; a list has no names.
    setting("collection-of-equal-states", "MetricCollection", binary, UNEVEN,
            metrics=[["BinaryF1Score", {}], ["BinaryPrecision", {}], ["BinaryRecall", {}]]),
    setting("collection-of-other-states", "MetricCollection", binary, EVEN,
            metrics=[["BinaryF1Score", {}], ["BinaryAUROC", {}], ["BinaryAccuracy", {}],
                     ["BinaryAveragePrecision", {}]]),
    setting("collection-by-name", "MetricCollection", binary, EVEN,
            metrics={"second": ["BinaryF1Score", {}], "first": ["BinaryRecall", {}]},
            prefix="val_"),
    setting("collection-merged-by-chance", "MetricCollection", binary, [[1, 2], [1, 2]],
            metrics={"low": ["BinaryF1Score", {"threshold": 0.4}],
                     "high": ["BinaryF1Score", {"threshold": 0.6}]},
            turns=[[["update", {"preds": [0.9], "target": [1]}],
                    ["update", {"preds": [0.5, 0.5], "target": [1, 0]}], ["compute"]]] * 2),
    setting("collection-forward", "MetricCollection", binary, EVEN, turn="forward",
            metrics=[["BinaryF1Score", {}], ["BinaryPrecision", {}]]),
]
