"""More settings of metrics, by family of formulas: see metric_settings.py."""

from metric_settings import (CLASSES, EMPTY, EVEN, LABELS, ONE, TWO, UNEVEN, binary, class_logits,
                             class_scores, classes, distinct, logits, multilabel, numbers, queries,
                             regression, setting, spread, two_outputs, values)

ALL = (("one", ONE), ("even", EVEN), ("uneven", UNEVEN), ("empty", EMPTY))
LISTED = (("one", ONE), *TWO)
ONLY = (("uneven", UNEVEN),)
# Lists that are gathered entry by entry need equally many on all ranks.
ENTRIES = (("one", ONE), ("even", EVEN), ("other-sizes", [[3, 6], [7, 2], [4, 4]]))


def positive(draw, count):
    return {key: [round(3 * draw.random() + 0.2, 3) for _ in range(count)]
            for key in ("preds", "target")}


def counts(draw, count):
    """Targets may be 0."""
    return {"preds": positive(draw, count)["preds"],
            "target": [float(draw.randrange(4)) for _ in range(count)]}


def tied(draw, count):
    return {key: [draw.randrange(5) / 4 for _ in range(count)] for key in ("preds", "target")}


def tied_outputs(draw, count):
    made = [tied(draw, 2) for _ in range(count)]
    return {key: [m[key] for m in made] for key in ("preds", "target")}


def distributions(draw, count):
    return {key: class_scores(draw, count)["preds"] for key in ("preds", "target")}


def log_distributions(draw, count):
    return {key: [[round(3 * draw.random() - 4, 3) for _ in range(4)] for _ in range(count)]
            for key in ("preds", "target")}


def ensembles(draw, count):
    return {"preds": [numbers(draw, 3) for _ in range(count)], "target": numbers(draw, count)}


def sequences(draw, count):
    """Two classified places a sample, often equal."""
    target = [[draw.randrange(4) for _ in range(2)] for _ in range(count)]
    return {"preds": [[t if draw.random() < 0.7 else draw.randrange(4) for t in row]
                      for row in target], "target": target}


def ranked_labels(draw, count):
    return {"preds": [distinct(draw, 3) for _ in range(count)],
            "target": [[draw.randrange(2) for _ in range(3)] for _ in range(count)]}


def graded(draw, count):
    return {**queries(draw, count), "target": [draw.randrange(4) for _ in range(count)]}


def tied_queries(draw, count):
    return {**graded(draw, count), "preds": [draw.randrange(4) / 4 for _ in range(count)]}


def queries_ignored(draw, count):
    return {**queries(draw, count), "target": [draw.choice((0, 1, -1)) for _ in range(count)]}


def multilabel_ignored(draw, count):
    return {**multilabel(draw, count),
            "target": [[draw.choice((0, 1, 1, -1)) for _ in range(3)] for _ in range(count)]}


def no_positives(_, count):
    return {"preds": [0] * count, "target": [0] * count}


REGRESSION = [
    *spread("msle", "MeanSquaredLogError", positive),
    *spread("mape", "MeanAbsolutePercentageError", regression),
    *spread("smape", "SymmetricMeanAbsolutePercentageError", regression),
    *spread("wmape", "WeightedMeanAbsolutePercentageError", regression),
    *spread("log-cosh", "LogCoshError", regression),
    *spread("log-cosh-of-two-outputs", "LogCoshError", two_outputs, TWO, num_outputs=2),
    *spread("minkowski", "MinkowskiDistance", regression, p=3),
    *spread("minkowski-1", "MinkowskiDistance", regression, TWO, p=1.0),
    *spread("tweedie", "TweedieDevianceScore", regression),
    *spread("tweedie-1", "TweedieDevianceScore", counts, power=1.0),
    *(made for power in (-1.0, 1.5, 2.0, 3.0)
      for made in spread(f"tweedie-{power}", "TweedieDevianceScore", positive, TWO, power=power)),
    *spread("rse", "RelativeSquaredError", regression),
    *spread("rse-root", "RelativeSquaredError", regression, TWO, squared=False),
    *spread("rse-of-two-outputs", "RelativeSquaredError", two_outputs, num_outputs=2),
    *spread("explained-variance", "ExplainedVariance", regression),
    *(made for over in ("raw_values", "uniform_average", "variance_weighted")
      for kind in ("ExplainedVariance", "R2Score")
      for made in spread(f"{kind.lower()}-of-two-{over}", kind, two_outputs, LISTED,
                         multioutput=over)),
    setting("explained-variance-of-two-on-an-empty-rank", "ExplainedVariance", two_outputs, EMPTY,
            fails=True),
    *spread("kl", "KLDivergence", distributions),
    *spread("js", "JensenShannonDivergence", distributions),
    *(made for kind, name in (("kl", "KLDivergence"), ("js", "JensenShannonDivergence"))
      for reduction in ("sum", "none")
      for made in spread(f"{kind}-{reduction}", name, distributions,
                         ALL if reduction == "none" else TWO, reduction=reduction)),
    *(made for kind, name in (("kl", "KLDivergence"), ("js", "JensenShannonDivergence"))
      for made in spread(f"{kind}-log", name, log_distributions, TWO, log_prob=True)),
    *(made for reduction in ("sum", "mean", "none")
      for made in spread(f"cosine-{reduction}", "CosineSimilarity", distributions, LISTED,
                         reduction=reduction)),
    setting("cosine-on-an-empty-rank", "CosineSimilarity", distributions, EMPTY, fails=True),
    *spread("concordance", "ConcordanceCorrCoef", regression),
    # No rank has seen a deviation of its own mean: nan.
    setting("pearson-of-one-sample-each", "PearsonCorrCoef", regression, [[1], [1], [1]]),
    *spread("concordance-of-two-outputs", "ConcordanceCorrCoef", two_outputs, TWO, num_outputs=2),
    *(made for how in ("mean", "range", "std", "l2")
      for made in spread(f"nrmse-{how}", "NormalizedRootMeanSquaredError", positive,
                         (("one", ONE), ("even", EVEN), ("empty", [[5, 3], []])),
                         normalization=how)),
    # Its merging of states indexes what it has just merged.
    setting("nrmse-of-three-ranks", "NormalizedRootMeanSquaredError", positive, UNEVEN, fails=True),
    *spread("csi", "CriticalSuccessIndex", binary, threshold=0.5),
    *spread("csi-by-place", "CriticalSuccessIndex", two_outputs, LISTED, threshold=0.4,
            keep_sequence_dim=1),
    *spread("crps", "ContinuousRankedProbabilityScore", ensembles),
    *spread("spearman", "SpearmanCorrCoef", regression),
    *spread("spearman-tied", "SpearmanCorrCoef", tied, TWO),
    *spread("spearman-of-two-outputs", "SpearmanCorrCoef", two_outputs, TWO, num_outputs=2),
    *(made for variant in "abc"
      for made in spread(f"kendall-{variant}", "KendallRankCorrCoef", tied, LISTED,
                         variant=variant)),
    *(made for how in ("two-sided", "less", "greater")
      for made in spread(f"kendall-{how}", "KendallRankCorrCoef", tied, TWO, t_test=True,
                         alternative=how)),
    *spread("kendall-of-two-outputs", "KendallRankCorrCoef", tied_outputs, TWO, num_outputs=2),
    setting("kendall-on-an-empty-rank", "KendallRankCorrCoef", tied, EMPTY, fails=True),
]

COUNTED = (("Hamming", "HammingDistance"), ("Specificity", "Specificity"),
           ("Npv", "NegativePredictiveValue"))
AVERAGES = ("micro", "macro", "weighted", "none")

CONFUSION = [
    *(made for short, kind in COUNTED if kind != "Specificity"
      for made in spread(f"binary-{short.lower()}", f"Binary{kind}", binary)),
    *(made for short, kind in COUNTED for average in AVERAGES
      for made in spread(f"multiclass-{short.lower()}-{average}", f"Multiclass{kind}", classes,
                         ONLY, average=average, **CLASSES)),
    *(made for short, kind in COUNTED for average in AVERAGES
      for made in spread(f"multilabel-{short.lower()}-{average}", f"Multilabel{kind}", multilabel,
                         ONLY, average=average, **LABELS)),
    *(made for short, kind in COUNTED for task, data, more in (
        ("binary", binary, {}), ("multiclass", classes, CLASSES), ("multilabel", multilabel, LABELS))
      if (kind, task) != ("Specificity", "binary")
      for made in spread(f"task-{task}-{short.lower()}", kind, data, ONLY, task=task, **more)),
    *spread("binary-kappa", "BinaryCohenKappa", binary),
    *(made for weights in (None, "linear", "quadratic")
      for made in spread(f"multiclass-kappa-{weights}", "MulticlassCohenKappa", classes, TWO,
                         weights=weights, **CLASSES)),
    *spread("task-binary-kappa", "CohenKappa", binary, ONLY, task="binary"),
    *spread("task-multiclass-kappa", "CohenKappa", classes, ONLY, task="multiclass",
            weights="linear", **CLASSES),
    *spread("binary-jaccard", "BinaryJaccardIndex", binary),
    *spread("binary-jaccard-of-none", "BinaryJaccardIndex", no_positives, ONLY, zero_division=1),
    *(made for average in AVERAGES
      for made in spread(f"multiclass-jaccard-{average}", "MulticlassJaccardIndex", classes, ONLY,
                         average=average, **CLASSES)),
    *(made for average in AVERAGES
      for made in spread(f"multiclass-jaccard-{average}-ignoring", "MulticlassJaccardIndex",
                         classes, ONLY, average=average, ignore_index=1, **CLASSES)),
    *(made for average in AVERAGES
      for made in spread(f"multilabel-jaccard-{average}", "MultilabelJaccardIndex", multilabel,
                         ONLY, average=average, **LABELS)),
    *(made for task, data, more in (("binary", binary, {}), ("multiclass", classes, CLASSES),
                                    ("multilabel", multilabel, LABELS))
      for made in (*spread(f"task-{task}-jaccard", "JaccardIndex", data, ONLY, task=task, **more),
                   *spread(f"task-{task}-matthews", "MatthewsCorrCoef", data, ONLY, task=task,
                           **more))),
    *spread("binary-matthews", "BinaryMatthewsCorrCoef", binary),
    *spread("multiclass-matthews", "MulticlassMatthewsCorrCoef", classes, TWO, **CLASSES),
    *spread("multilabel-matthews", "MultilabelMatthewsCorrCoef", multilabel, TWO, **LABELS),
    # One row or column of the matrix is empty: each has a rule of its own.
    *(setting(f"binary-matthews-{name}", "BinaryMatthewsCorrCoef", binary, [[2], [2]],
              turns=[[["update", {"preds": preds, "target": target}], ["compute"]]] * 2)
      for name, preds, target in (
          ("right", [0, 1, 1], [0, 1, 1]), ("wrong", [0, 1], [1, 0]),
          ("all-predicted", [1, 1, 1], [1, 1, 0]), ("none-predicted", [0, 0, 0], [0, 1, 0]),
          ("all-positive", [1, 0, 1], [1, 1, 1]), ("all-negative", [1, 0, 0], [0, 0, 0]))),
    setting("multiclass-matthews-of-one-class", "MulticlassMatthewsCorrCoef", classes, [[2], [2]],
            turns=[[["update", {"preds": [2, 2], "target": [2, 2]}], ["compute"]]] * 2, **CLASSES),
    *spread("binary-hinge", "BinaryHingeLoss", logits),
    *spread("binary-hinge-squared", "BinaryHingeLoss", binary, TWO, squared=True),
    *(made for mode in ("crammer-singer", "one-vs-all")
      for made in spread(f"multiclass-hinge-{mode}", "MulticlassHingeLoss", class_logits,
                         multiclass_mode=mode, squared=mode == "one-vs-all", **CLASSES)),
    *spread("task-binary-hinge", "HingeLoss", binary, ONLY, task="binary"),
    *spread("task-multiclass-hinge", "HingeLoss", class_scores, ONLY, task="multiclass",
            **CLASSES),
    *(made for norm in ("l1", "l2", "max")
      for made in spread(f"binary-calibration-{norm}", "BinaryCalibrationError", binary, LISTED,
                         norm=norm, n_bins=5)),
    *(made for norm in ("l1", "l2", "max")
      for made in spread(f"multiclass-calibration-{norm}", "MulticlassCalibrationError",
                         class_scores, norm=norm, **CLASSES)),
    setting("binary-calibration-on-an-empty-rank", "BinaryCalibrationError", binary, EMPTY,
            fails=True),
    *spread("task-binary-calibration", "CalibrationError", binary, ONLY, task="binary"),
    *spread("task-multiclass-calibration", "CalibrationError", class_logits, ONLY,
            task="multiclass", **CLASSES),
    *spread("multiclass-exact-match", "MulticlassExactMatch", sequences, **CLASSES),
    *spread("multiclass-exact-match-ignoring", "MulticlassExactMatch", sequences, ONLY,
            ignore_index=1, **CLASSES),
    *spread("multilabel-exact-match", "MultilabelExactMatch", multilabel, threshold=0.4, **LABELS),
    *spread("task-multiclass-exact-match", "ExactMatch", sequences, ONLY, task="multiclass",
            **CLASSES),
    *spread("task-multilabel-exact-match", "ExactMatch", multilabel, ONLY, task="multilabel",
            **LABELS),
    *(made for kind in ("CoverageError", "RankingAveragePrecision", "RankingLoss")
      for made in spread(f"multilabel-{kind.lower()}", f"Multilabel{kind}", ranked_labels,
                         **LABELS)),
]

RANKED = ("MRR", "NormalizedDCG", "Precision", "Recall", "HitRate", "FallOut", "RPrecision", "AUROC")

RETRIEVAL = [
    *(made for kind in RANKED
      for made in spread(f"retrieval-{kind.lower()}", f"Retrieval{kind}", queries, ENTRIES)),
    *(made for kind in RANKED if kind != "RPrecision"
      for made in spread(f"retrieval-{kind.lower()}-top-2", f"Retrieval{kind}", queries,
                         (("even", EVEN),), top_k=2)),
    *(made for kind in ("MRR", "FallOut") for action in ("neg", "pos", "skip")
      for made in spread(f"retrieval-{kind.lower()}-empty-{action}", f"Retrieval{kind}", queries,
                         (("even", [[3, 3], [2, 3]]),), empty_target_action=action)),
    *(made for how in ("median", "min", "max")
      for made in spread(f"retrieval-mrr-{how}", "RetrievalMRR", queries, (("even", EVEN),),
                         aggregation=how)),
    *spread("retrieval-ndcg-graded", "RetrievalNormalizedDCG", graded, ENTRIES),
    *spread("retrieval-ndcg-tied", "RetrievalNormalizedDCG", tied_queries, (("even", EVEN),)),
    *spread("retrieval-ndcg-tied-top-2", "RetrievalNormalizedDCG", tied_queries, (("even", EVEN),),
            top_k=2),
    *spread("retrieval-precision-top-9", "RetrievalPrecision", queries, (("even", EVEN),), top_k=9),
    *spread("retrieval-precision-adaptive", "RetrievalPrecision", queries, (("even", EVEN),),
            top_k=9, adaptive_k=True),
    *spread("retrieval-auroc-partial", "RetrievalAUROC", queries, (("even", EVEN),), max_fpr=0.5),
    *spread("retrieval-ignoring", "RetrievalMRR", queries_ignored, (("even", EVEN),), ignore_index=-1),
    *spread("retrieval-curve", "RetrievalPrecisionRecallCurve", queries, ENTRIES),
    *spread("retrieval-curve-of-3", "RetrievalPrecisionRecallCurve", queries, (("even", EVEN),),
            max_k=3),
    *spread("retrieval-curve-adaptive", "RetrievalPrecisionRecallCurve", queries,
            (("even", EVEN),), max_k=9, adaptive_k=True),
    *spread("retrieval-recall-at-precision", "RetrievalRecallAtFixedPrecision", queries, ENTRIES,
            min_precision=0.4),
    setting("retrieval-mrr-uneven-updates", "RetrievalMRR", queries, [[3, 3], [4]], fails=True),
]

CURVES = [
    *(made for kind in ("ROC", "PrecisionRecallCurve")
      for made in (
          *spread(f"binary-{kind.lower()}", f"Binary{kind}", binary, LISTED),
          *spread(f"binary-{kind.lower()}-logits", f"Binary{kind}", logits, ONLY),
          *spread(f"binary-{kind.lower()}-binned", f"Binary{kind}", binary, thresholds=5),
          *(made for average in (None, "micro", "macro")
            for made in spread(f"multiclass-{kind.lower()}-{average}", f"Multiclass{kind}",
                               class_scores, TWO, average=average, **CLASSES)),
          *(made for average in (None, "macro")
            for made in spread(f"multiclass-{kind.lower()}-{average}-binned", f"Multiclass{kind}",
                               class_scores, ONLY, average=average, thresholds=5, **CLASSES)),
          *spread(f"multilabel-{kind.lower()}", f"Multilabel{kind}", multilabel, TWO, **LABELS),
          *spread(f"multilabel-{kind.lower()}-binned", f"Multilabel{kind}", multilabel,
                  thresholds=5, **LABELS),
          *spread(f"task-binary-{kind.lower()}", kind, binary, ONLY, task="binary"),
          *spread(f"task-multiclass-{kind.lower()}", kind, class_scores, ONLY, task="multiclass",
                  **CLASSES),
          *spread(f"task-multilabel-{kind.lower()}", kind, multilabel, ONLY, task="multilabel",
                  **LABELS))),
    *(made for kind in ("AUROC", "AveragePrecision") for average in AVERAGES
      for made in (
          *spread(f"multilabel-{kind.lower()}-{average}", f"Multilabel{kind}", multilabel, ONLY,
                  average=average, **LABELS),
          *spread(f"multilabel-{kind.lower()}-{average}-binned", f"Multilabel{kind}", multilabel,
                  ONLY, average=average, thresholds=6, **LABELS))),
    *(made for kind in ("AUROC", "AveragePrecision", "ROC", "PrecisionRecallCurve")
      for binned in (None, 5)
      for made in spread(f"multilabel-{kind.lower()}-ignoring-{binned}", f"Multilabel{kind}",
                         multilabel_ignored, ONLY, ignore_index=-1, thresholds=binned, **LABELS)),
    *(made for kind in ("AUROC", "AveragePrecision")
      for made in spread(f"task-multilabel-{kind.lower()}", kind, multilabel, ONLY,
                         task="multilabel", **LABELS)),
    *(made for task, data, more in (("binary", binary, {}), ("multiclass", class_scores, CLASSES),
                                    ("multilabel", multilabel, LABELS))
      for made in (*spread(f"{task}-eer", f"{task.capitalize()}EER", data, LISTED, **more),
                   *spread(f"{task}-eer-binned", f"{task.capitalize()}EER", data, ONLY,
                           thresholds=6, **more),
                   *spread(f"task-{task}-eer", "EER", data, ONLY, task=task, **more),
                   # It sorts points of equal rates by an order that torch leaves to chance: with
                   # these shards it is that in which they came.
                   *spread(f"{task}-logauc", f"{task.capitalize()}LogAUC", data,
                           (("one", ONE), ("uneven", UNEVEN)), fpr_range=[0.05, 0.6], **more),
                   *spread(f"task-{task}-logauc", "LogAUC", data, ONLY, task=task,
                           fpr_range=[0.05, 0.6], **more))),
    *(made for kind, key in (("RecallAtFixedPrecision", "min_precision"),
                             ("PrecisionAtFixedRecall", "min_recall"),
                             ("SensitivityAtSpecificity", "min_specificity"),
                             ("SpecificityAtSensitivity", "min_sensitivity"))
      for task, data, more in (("binary", binary, {}), ("multiclass", class_scores, CLASSES),
                               ("multilabel", multilabel, LABELS))
      for made in (*spread(f"{task}-{kind.lower()}", f"{task.capitalize()}{kind}", data, LISTED,
                           **{key: 0.5}, **more),
                   *spread(f"{task}-{kind.lower()}-binned", f"{task.capitalize()}{kind}", data,
                           ONLY, thresholds=6, **{key: 0.5}, **more),
                   *spread(f"task-{task}-{kind.lower()}", kind, data, ONLY, task=task,
                           **{key: 0.5}, **more))),
]

LIFE = [
    *spread("running-mean", "RunningMean", values, (
        *ALL, ("longer", [[1, 2, 3, 1], [2, 2]])), window=2),
    *spread("running-sum", "RunningSum", values, (*ALL, ("longer", [[1, 2, 3, 1], [2, 2]])),
            window=3),
    *spread("running-mean-of-5", "RunningMean", values, TWO),
    setting("running-mean-computed-twice", "RunningMean", values, [[2], [2]], window=2,
            turns=[[["update", {"value": [float(r + 1)]}], ["compute"], ["compute"],
                    ["update", {"value": [3.0]}], ["update", {"value": [5.0]}], ["compute"],
                    ["reset"], ["update", {"value": [7.0]}], ["compute"]] for r in range(2)]),
    *(setting(f"forward-{metric}", metric, data, EVEN, turn="forward", **arguments)
      for metric, data, arguments in (
          ("RunningMean", values, {"window": 2}), ("RunningSum", values, {"window": 2}),
          ("CosineSimilarity", distributions, {}), ("KendallRankCorrCoef", tied, {}),
          ("ConcordanceCorrCoef", regression, {}), ("BinaryROC", binary, {}),
          ("BinaryJaccardIndex", binary, {}), ("RetrievalMRR", queries, {}),
          ("MeanSquaredLogError", positive, {}), ("ExplainedVariance", regression, {}),
          ("NormalizedRootMeanSquaredError", positive, {}))),
    *(setting(f"forward-synchronised-{metric}", metric, data, EVEN, turn="forward",
              dist_sync_on_step=True)
      for metric, data in (("RunningSum", values), ("BinaryROC", binary),
                           ("SpearmanCorrCoef", regression))),
    setting("collection-of-curves", "MetricCollection", binary, EVEN,
            metrics=[["BinaryROC", {}], ["BinaryAUROC", {}], ["BinaryPrecisionRecallCurve", {}]]),
    setting("collection-of-matrices", "MetricCollection", binary, UNEVEN,
            metrics=[["BinaryCohenKappa", {}], ["BinaryConfusionMatrix", {}],
                     ["BinaryJaccardIndex", {}], ["BinaryHammingDistance", {}]]),
]

METRIC_FAMILY_SETTINGS = [*REGRESSION, *CONFUSION, *RETRIEVAL, *CURVES, *LIFE]
