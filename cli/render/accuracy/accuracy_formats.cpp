#include <fmt/format.h>

#include "cli/render/accuracy/accuracy_view.hpp"
#include "cli/render/json.hpp"
#include "rehearsal/sweep/csv_cells.hpp"

namespace lockstep::cli {

namespace {

Json json_of_errors(const ErrorSummary& summary) {
  return {{"name", summary.name},           {"rows", summary.rows},
          {"ratio", summary.ratio},         {"mean_error", summary.mean},
          {"median_error", summary.median}, {"error_90th_percentile", summary.ninetieth},
          {"worst_error", summary.worst},   {"worst_row", summary.worst_row},
          {"time_factor_low", summary.low}, {"time_factor_high", summary.high}};
}

Json json_of_row(const PredictedRow& row) {
  Json json = {
      {"row_id", row.id},       {"source", row.group.source}, {"software", row.group.software},
      {"gpu", row.group.gpu},   {"family", row.group.family}, {"strategy", row.group.strategy},
      {"gpus", row.group.gpus}, {"nodes", row.group.nodes}};
  if (row.predicted) {
    json["measured_samples_per_s"] = row.measured;
    json["predicted_samples_per_s"] = *row.predicted;
    json["error"] = row.error();
  } else {
    json["not_predicted"] = row.why_not;
  }
  return json;
}

}  // namespace

std::string accuracy_json(const AccuracyView& view) {
  Json json = {{"schema_version", schema_version},
               {"command", "accuracy"},
               {"all", json_of_errors(summary_of_all(view))}};
  for (const AccuracyGrouping& grouping : accuracy_groupings()) {
    Json groups = Json::array();
    for (const ErrorSummary& summary : summaries_by(view.rows, grouping.name_of)) {
      groups.push_back(json_of_errors(summary));
    }
    json["by"][grouping.title] = groups;
  }
  for (const bool in_node : {true, false}) {
    const ScalingSummary scaling = scaling_summary(view, in_node);
    json["scaling"][in_node ? "in_a_node" : "across_nodes"] = {
        {"pairs", scaling.pairs}, {"mean_difference_points", scaling.points}};
  }
  Json rows = Json::array();
  for (const PredictedRow& row : view.rows) {
    rows.push_back(json_of_row(row));
  }
  json["rows"] = rows;
  return text_of(json);
}

std::string accuracy_csv(const AccuracyView& view) {
  std::string text =
      "row_id,source,software,gpu,family,strategy,precision,gpus,nodes,measured_samples_per_s,"
      "predicted_samples_per_s,error,not_predicted\n";
  for (const PredictedRow& row : view.rows) {
    const RowClass& group = row.group;
    text += fmt::format("{},{},{},{},{},{},{},{},{},", csv_cell(row.id), csv_cell(group.source),
                        group.software, csv_cell(group.gpu), group.family, csv_cell(group.strategy),
                        group.precision, group.gpus, group.nodes);
    text += row.predicted
                ? fmt::format("{:.6g},{:.6g},{:.4f},\n", row.measured, *row.predicted, row.error())
                : fmt::format(",,,{}\n", csv_cell(row.why_not));
  }
  return text;
}

}  // namespace lockstep::cli
