#include "model/metric/torchmetrics_names.hpp"

#include <fmt/format.h>
#include <algorithm>

#include <array>

namespace lockstep {

namespace {

struct NameGroup {
  std::string_view package;
  std::string_view why_not;  ///< empty: modelled
  std::string_view nearest;
  std::string_view names;
};

// torchmetrics/*/__init__.py of version 1.9.0.
constexpr auto class_groups = std::to_array<NameGroup>({
    {"aggregation", "", "",
     "CatMetric MaxMetric MeanMetric MinMetric RunningMean RunningSum SumMetric"},
    {"audio", "scores of audio signals are not modelled", "MeanSquaredError",
     "ComplexScaleInvariantSignalNoiseRatio DeepNoiseSuppressionMeanOpinionScore "
     "NonIntrusiveSpeechQualityAssessment PerceptualEvaluationSpeechQuality "
     "PermutationInvariantTraining ScaleInvariantSignalDistortionRatio "
     "ScaleInvariantSignalNoiseRatio ShortTimeObjectiveIntelligibility SignalDistortionRatio "
     "SignalNoiseRatio SourceAggregatedSignalDistortionRatio "
     "SpeechReverberationModulationEnergyRatio"},
    {"classification", "", "",
     "AUROC Accuracy AveragePrecision BinaryAUROC BinaryAccuracy BinaryAveragePrecision "
     "BinaryCalibrationError BinaryCohenKappa BinaryConfusionMatrix BinaryEER BinaryF1Score "
     "BinaryFBetaScore BinaryHammingDistance BinaryHingeLoss BinaryJaccardIndex BinaryLogAUC "
     "BinaryMatthewsCorrCoef BinaryNegativePredictiveValue BinaryPrecision "
     "BinaryPrecisionAtFixedRecall BinaryPrecisionRecallCurve BinaryROC BinaryRecall "
     "BinaryRecallAtFixedPrecision BinarySensitivityAtSpecificity BinarySpecificity "
     "BinarySpecificityAtSensitivity BinaryStatScores CalibrationError CohenKappa "
     "ConfusionMatrix EER ExactMatch F1Score FBetaScore HammingDistance HingeLoss JaccardIndex "
     "LogAUC MatthewsCorrCoef MulticlassAUROC MulticlassAccuracy MulticlassAveragePrecision "
     "MulticlassCalibrationError MulticlassCohenKappa MulticlassConfusionMatrix MulticlassEER "
     "MulticlassExactMatch MulticlassF1Score MulticlassFBetaScore MulticlassHammingDistance "
     "MulticlassHingeLoss MulticlassJaccardIndex MulticlassLogAUC MulticlassMatthewsCorrCoef "
     "MulticlassNegativePredictiveValue MulticlassPrecision MulticlassPrecisionAtFixedRecall "
     "MulticlassPrecisionRecallCurve MulticlassROC MulticlassRecall "
     "MulticlassRecallAtFixedPrecision MulticlassSensitivityAtSpecificity "
     "MulticlassSpecificity MulticlassSpecificityAtSensitivity MulticlassStatScores "
     "MultilabelAUROC MultilabelAccuracy MultilabelAveragePrecision MultilabelConfusionMatrix "
     "MultilabelCoverageError MultilabelEER MultilabelExactMatch MultilabelF1Score "
     "MultilabelFBetaScore MultilabelHammingDistance MultilabelJaccardIndex MultilabelLogAUC "
     "MultilabelMatthewsCorrCoef MultilabelNegativePredictiveValue MultilabelPrecision "
     "MultilabelPrecisionAtFixedRecall MultilabelPrecisionRecallCurve MultilabelROC "
     "MultilabelRankingAveragePrecision MultilabelRankingLoss MultilabelRecall "
     "MultilabelRecallAtFixedPrecision MultilabelSensitivityAtSpecificity "
     "MultilabelSpecificity MultilabelSpecificityAtSensitivity MultilabelStatScores "
     "NegativePredictiveValue Precision PrecisionAtFixedRecall PrecisionRecallCurve ROC Recall "
     "RecallAtFixedPrecision SensitivityAtSpecificity Specificity SpecificityAtSensitivity "
     "StatScores"},
    {"classification", "it takes groups of samples, which `update` cannot give",
     "BinaryStatScores for each group", "BinaryFairness BinaryGroupStatRates"},
    {"clustering", "scores of clusterings are not modelled",
     "MulticlassConfusionMatrix, of which they are made",
     "AdjustedMutualInfoScore AdjustedRandScore CalinskiHarabaszScore ClusterAccuracy "
     "CompletenessScore DaviesBouldinScore DunnIndex FowlkesMallowsIndex HomogeneityScore "
     "MutualInfoScore NormalizedMutualInfoScore RandScore VMeasureScore"},
    {"collections", "", "", "MetricCollection"},
    {"detection", "scores of boxes and masks are not modelled",
     "BinaryAveragePrecision of matched boxes",
     "CompleteIntersectionOverUnion DistanceIntersectionOverUnion "
     "GeneralizedIntersectionOverUnion IntersectionOverUnion MeanAveragePrecision "
     "ModifiedPanopticQuality PanopticQuality"},
    {"image", "scores of images are not modelled", "MeanSquaredError",
     "DeepImageStructureAndTextureSimilarity ErrorRelativeGlobalDimensionlessSynthesis "
     "FrechetInceptionDistance InceptionScore KernelInceptionDistance "
     "LearnedPerceptualImagePatchSimilarity MemorizationInformedFrechetInceptionDistance "
     "MultiScaleStructuralSimilarityIndexMeasure PeakSignalNoiseRatio "
     "PeakSignalNoiseRatioWithBlockedEffect PerceptualPathLength QualityWithNoReference "
     "RelativeAverageSpectralError RootMeanSquaredErrorUsingSlidingWindow "
     "SpatialCorrelationCoefficient SpatialDistortionIndex SpectralAngleMapper "
     "SpectralDistortionIndex StructuralSimilarityIndexMeasure TotalVariation "
     "UniversalImageQualityIndex VisualInformationFidelity"},
    {"multimodal", "it needs a pretrained network", "MeanMetric of scores that you compute",
     "CLIPImageQualityAssessment CLIPScore LipVertexError"},
    {"nominal", "association of nominal variables is not modelled",
     "MulticlassConfusionMatrix, of which they are made",
     "CramersV FleissKappa PearsonsContingencyCoefficient TheilsU TschuprowsT"},
    {"regression", "", "",
     "ConcordanceCorrCoef ContinuousRankedProbabilityScore CosineSimilarity "
     "CriticalSuccessIndex ExplainedVariance JensenShannonDivergence KLDivergence "
     "KendallRankCorrCoef LogCoshError MeanAbsoluteError MeanAbsolutePercentageError "
     "MeanSquaredError MeanSquaredLogError MinkowskiDistance NormalizedRootMeanSquaredError "
     "PearsonCorrCoef R2Score RelativeSquaredError SpearmanCorrCoef "
     "SymmetricMeanAbsolutePercentageError TweedieDevianceScore "
     "WeightedMeanAbsolutePercentageError"},
    {"retrieval", "", "",
     "RetrievalAUROC RetrievalFallOut RetrievalHitRate RetrievalMAP RetrievalMRR "
     "RetrievalNormalizedDCG RetrievalPrecision RetrievalPrecisionRecallCurve "
     "RetrievalRPrecision RetrievalRecall RetrievalRecallAtFixedPrecision"},
    {"segmentation", "scores of masks are not modelled",
     "MulticlassJaccardIndex or MulticlassF1Score of pixels",
     "DiceScore GeneralizedDiceScore HausdorffDistance MeanIoU"},
    {"shape", "scores of shapes are not modelled", "MeanSquaredError", "ProcrustesDisparity"},
    {"text", "", "", "Perplexity"},
    {"text", "scores of text are not modelled",
     "Perplexity, or MeanMetric of scores that you compute",
     "BERTScore BLEUScore CHRFScore CharErrorRate EditDistance ExtendedEditDistance InfoLM "
     "MatchErrorRate ROUGEScore SQuAD SacreBLEUScore TranslationEditRate WordErrorRate "
     "WordInfoLost WordInfoPreserved"},
    {"video", "it needs a program outside of Python", "MeanMetric of scores that you compute",
     "VideoMultiMethodAssessmentFusion"},
    {"wrappers", "wrappers around metrics are not modelled",
     "the metric inside, declared by itself",
     "BinaryTargetTransformer BootStrapper ClasswiseWrapper FeatureShare "
     "LambdaInputTransformer MetricInputTransformer MetricTracker MinMaxMetric "
     "MultioutputWrapper MultitaskWrapper Running"},
});

// torchmetrics/functional/*/__init__.py.
constexpr auto function_groups = std::to_array<NameGroup>({
    {"audio", "scores of audio signals are not modelled", "mean_squared_error",
     "complex_scale_invariant_signal_noise_ratio deep_noise_suppression_mean_opinion_score "
     "non_intrusive_speech_quality_assessment perceptual_evaluation_speech_quality "
     "permutation_invariant_training pit_permutate scale_invariant_signal_distortion_ratio "
     "scale_invariant_signal_noise_ratio short_time_objective_intelligibility "
     "signal_distortion_ratio signal_noise_ratio source_aggregated_signal_distortion_ratio "
     "speech_reverberation_modulation_energy_ratio"},
    {"classification", "", "",
     "accuracy auroc average_precision binary_accuracy binary_auroc binary_average_precision "
     "binary_calibration_error binary_cohen_kappa binary_confusion_matrix binary_eer "
     "binary_f1_score binary_fbeta_score binary_hamming_distance binary_hinge_loss "
     "binary_jaccard_index binary_logauc binary_matthews_corrcoef "
     "binary_negative_predictive_value binary_precision binary_precision_at_fixed_recall "
     "binary_precision_recall_curve binary_recall binary_recall_at_fixed_precision binary_roc "
     "binary_sensitivity_at_specificity binary_specificity binary_specificity_at_sensitivity "
     "binary_stat_scores calibration_error cohen_kappa confusion_matrix eer exact_match "
     "f1_score fbeta_score hamming_distance hinge_loss jaccard_index logauc matthews_corrcoef "
     "multiclass_accuracy multiclass_auroc multiclass_average_precision "
     "multiclass_calibration_error multiclass_cohen_kappa multiclass_confusion_matrix "
     "multiclass_eer multiclass_exact_match multiclass_f1_score multiclass_fbeta_score "
     "multiclass_hamming_distance multiclass_hinge_loss multiclass_jaccard_index "
     "multiclass_logauc multiclass_matthews_corrcoef multiclass_negative_predictive_value "
     "multiclass_precision multiclass_precision_at_fixed_recall "
     "multiclass_precision_recall_curve multiclass_recall multiclass_recall_at_fixed_precision "
     "multiclass_roc multiclass_sensitivity_at_specificity multiclass_specificity "
     "multiclass_specificity_at_sensitivity multiclass_stat_scores multilabel_accuracy "
     "multilabel_auroc multilabel_average_precision multilabel_confusion_matrix "
     "multilabel_coverage_error multilabel_eer multilabel_exact_match multilabel_f1_score "
     "multilabel_fbeta_score multilabel_hamming_distance multilabel_jaccard_index "
     "multilabel_logauc multilabel_matthews_corrcoef multilabel_negative_predictive_value "
     "multilabel_precision multilabel_precision_at_fixed_recall "
     "multilabel_precision_recall_curve multilabel_ranking_average_precision "
     "multilabel_ranking_loss multilabel_recall multilabel_recall_at_fixed_precision "
     "multilabel_roc multilabel_sensitivity_at_specificity multilabel_specificity "
     "multilabel_specificity_at_sensitivity multilabel_stat_scores negative_predictive_value "
     "precision precision_at_fixed_recall precision_recall_curve recall "
     "recall_at_fixed_precision roc sensitivity_at_specificity specificity "
     "specificity_at_sensitivity stat_scores"},
    {"classification", "it takes groups of samples, which `update` cannot give",
     "binary_stat_scores of each group",
     "binary_fairness binary_groups_stat_rates demographic_parity equal_opportunity"},
    {"clustering", "scores of clusterings are not modelled",
     "multiclass_confusion_matrix, of which they are made",
     "adjusted_mutual_info_score adjusted_rand_score calinski_harabasz_score cluster_accuracy "
     "completeness_score davies_bouldin_score dunn_index fowlkes_mallows_index "
     "homogeneity_score mutual_info_score normalized_mutual_info_score rand_score "
     "v_measure_score"},
    {"detection", "scores of boxes and masks are not modelled",
     "binary_average_precision of matched boxes",
     "complete_intersection_over_union distance_intersection_over_union "
     "generalized_intersection_over_union intersection_over_union mean_average_precision "
     "modified_panoptic_quality panoptic_quality"},
    {"image", "scores of images are not modelled", "mean_squared_error",
     "arniqa deep_image_structure_and_texture_similarity "
     "error_relative_global_dimensionless_synthesis image_gradients "
     "learned_perceptual_image_patch_similarity multiscale_structural_similarity_index_measure "
     "peak_signal_noise_ratio peak_signal_noise_ratio_with_blocked_effect "
     "perceptual_path_length quality_with_no_reference relative_average_spectral_error "
     "root_mean_squared_error_using_sliding_window spatial_correlation_coefficient "
     "spatial_distortion_index spectral_angle_mapper spectral_distortion_index "
     "structural_similarity_index_measure total_variation universal_image_quality_index "
     "visual_information_fidelity"},
    {"multimodal", "it needs a pretrained network", "the mean of scores that you compute",
     "clip_image_quality_assessment clip_score lip_vertex_error"},
    {"nominal", "association of nominal variables is not modelled",
     "multiclass_confusion_matrix, of which they are made",
     "cramers_v cramers_v_matrix fleiss_kappa pearsons_contingency_coefficient "
     "pearsons_contingency_coefficient_matrix theils_u theils_u_matrix tschuprows_t "
     "tschuprows_t_matrix"},
    {"pairwise", "matrices of all pairs of rows are not modelled",
     "cosine_similarity of equal rows",
     "pairwise_cosine_similarity pairwise_euclidean_distance pairwise_linear_similarity "
     "pairwise_manhattan_distance pairwise_minkowski_distance"},
    {"regression", "", "",
     "concordance_corrcoef continuous_ranked_probability_score cosine_similarity "
     "critical_success_index explained_variance jensen_shannon_divergence "
     "kendall_rank_corrcoef kl_divergence log_cosh_error mean_absolute_error "
     "mean_absolute_percentage_error mean_squared_error mean_squared_log_error "
     "minkowski_distance normalized_root_mean_squared_error pearson_corrcoef r2_score "
     "relative_squared_error spearman_corrcoef symmetric_mean_absolute_percentage_error "
     "tweedie_deviance_score weighted_mean_absolute_percentage_error"},
    {"retrieval", "", "",
     "retrieval_auroc retrieval_average_precision retrieval_fall_out retrieval_hit_rate "
     "retrieval_normalized_dcg retrieval_precision retrieval_precision_recall_curve "
     "retrieval_r_precision retrieval_recall retrieval_reciprocal_rank"},
    {"segmentation", "scores of masks are not modelled",
     "multiclass_jaccard_index or multiclass_f1_score of pixels",
     "dice_score generalized_dice_score hausdorff_distance mean_iou"},
    {"shape", "scores of shapes are not modelled", "mean_squared_error", "procrustes_disparity"},
    {"text", "", "", "perplexity"},
    {"text", "scores of text are not modelled",
     "perplexity, or the mean of scores that you compute",
     "bert_score bleu_score char_error_rate chrf_score edit_distance extended_edit_distance "
     "infolm match_error_rate rouge_score sacre_bleu_score squad translation_edit_rate "
     "word_error_rate word_information_lost word_information_preserved"},
    {"video", "it needs a program outside of Python", "the mean of scores that you compute",
     "video_multi_method_assessment_fusion"},
});

std::vector<TorchMetricsName> names_of(std::span<const NameGroup> groups) {
  std::vector<TorchMetricsName> all;
  for (const NameGroup& group : groups) {
    std::string_view rest = group.names;
    while (!rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
      all.push_back({name, group.package, group.why_not, group.nearest});
    }
  }
  return all;
}

std::optional<TorchMetricsName> find_name(std::span<const NameGroup> groups,
                                          std::string_view name) {
  for (const TorchMetricsName& known : names_of(groups)) {
    if (known.name == name) {
      return known;
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<TorchMetricsName> torchmetrics_classes() { return names_of(class_groups); }

std::vector<TorchMetricsName> torchmetrics_functions() { return names_of(function_groups); }

std::optional<TorchMetricsName> find_torchmetrics_class(std::string_view name) {
  return find_name(class_groups, name);
}

std::optional<TorchMetricsName> find_torchmetrics_function(std::string_view name) {
  return find_name(function_groups, name);
}

std::string text_of_unsupported(const TorchMetricsName& known) {
  return fmt::format("`{}` of torchmetrics.{}: {}", known.name, known.package, known.why_not);
}

std::string remedy_of_unsupported(const TorchMetricsName& known) {
  return fmt::format("the nearest that is supported: {}", known.nearest);
}

}  // namespace lockstep
