#include <algorithm>

#include "io/report/report_fields.hpp"

namespace lockstep {

namespace {

Json json_of(const Values& values) {
  return {static_cast<int>(values.dtype()), binary_of(values.bytes())};
}

Values values_of(const Json& json) {
  const auto dtype = enumerator_of(json.at(0), DType::uint8);
  const auto bytes = values_of_binary<std::byte>(json.at(1));
  const auto element = static_cast<size_t>(size_of(dtype));
  if (bytes.size() % element != 0) {
    throw ReportError("a tensor of the report is cut short: run the ranks again");
  }
  Values values(dtype, static_cast<int64_t>(bytes.size() / element));
  std::ranges::copy(bytes, values.bytes().begin());
  return values;
}

Json json_of(const StatementFinding& finding) {
  return {finding.code,   finding.site.value, finding.message,
          finding.remedy, finding.times,      finding.list};
}

StatementFinding finding_of(const Json& json) {
  return {json.at(0), site_of(json.at(1)),  json.at(2),
          json.at(3), count_of(json.at(4)), json.at(5)};
}

Json json_of(const LoggedKey& key) {
  return {key.key,
          key.site.value,
          key.hook,
          key.is_object,
          key.synchronised,
          key.rank_zero_only,
          key.of_last_batch,
          key.is_out_of_reach,
          key.reduce_fx,
          key.value,
          key.own,
          key.batch_sizes,
          key.common_batch_sizes,
          key.batches};
}

LoggedKey logged_key_of(const Json& json) {
  return {json.at(0),
          site_of(json.at(1)),
          json.at(2),
          json.at(3),
          json.at(4),
          json.at(5),
          json.at(6),
          json.at(7),
          json.at(8),
          real_of(json.at(9)),
          real_of(json.at(10)),
          count_of(json.at(11)),
          count_of(json.at(12)),
          count_of(json.at(13))};
}

Json json_of(const SampleUse& use) {
  return {use.stage, use.epoch, use.dataloader,
          binary_of(std::span<const int64_t>(use.samples.list()))};
}

SampleUse samples_of(const Json& json) {
  return {json.at(0), count_of(json.at(1)), count_of(json.at(2)),
          values_of_binary<int64_t>(json.at(3))};
}

Json json_of(const Transfer& transfer) {
  return {transfer.label, transfer.count, transfer.bytes.count()};
}

Transfer transfer_of(const Json& json) {
  return {json.at(0), count_of(json.at(1)), Bytes(count_of(json.at(2)))};
}

Json json_of(const FinalPart& part) { return {part.parameter, part.first_element}; }

FinalPart part_of(const Json& json) {
  return {static_cast<size_t>(count_of(json.at(0))), count_of(json.at(1))};
}

Json json_of(const KnownDifference& known) {
  return {known.cause, known.remedy, static_cast<int>(known.kind)};
}

KnownDifference difference_of(const Json& json) {
  return {json.at(0), json.at(1), enumerator_of(json.at(2), DifferenceKind::of_buffers)};
}

// As bits: it may be no number.
Json json_of(const std::optional<double>& number) {
  std::vector<double> numbers;
  if (number) {
    numbers.push_back(*number);
  }
  return binary_of(std::span<const double>(numbers));
}

std::optional<double> number_of(const Json& json) {
  const std::vector<double> numbers = values_of_binary<double>(json);
  return numbers.empty() ? std::nullopt : std::optional(numbers.front());
}

Json json_of(const std::optional<Staleness>& staleness) {
  return staleness ? Json::array({staleness->pushes, staleness->updates, staleness->most,
                                  staleness->dropped})
                   : Json(nullptr);
}

std::optional<Staleness> staleness_of(const Json& json) {
  if (json.is_null()) {
    return std::nullopt;
  }
  return Staleness{count_of(json.at(0)), count_of(json.at(1)), count_of(json.at(2)),
                   count_of(json.at(3))};
}

Json json_of(const std::optional<MissingLoss>& missing) {
  return missing ? Json::array({missing->of_training, missing->of_evaluation, missing->cause,
                                missing->remedy})
                 : Json(nullptr);
}

std::optional<MissingLoss> missing_loss_of(const Json& json) {
  if (json.is_null()) {
    return std::nullopt;
  }
  return MissingLoss{json.at(0), json.at(1), json.at(2), json.at(3)};
}

Json json_of(const WeightUpdate& update) {
  return {
      update.optimizer,           update.learning_rate, static_cast<int>(update.clipping.algorithm),
      update.clipping.limit,      update.has_gradients, update.site.value,
      update.clipping_site.value, update.times,         update.batches,
      update.takes_over};
}

WeightUpdate update_of(const Json& json) {
  return {json.at(0),
          real_of(json.at(1)),
          {enumerator_of(json.at(2), GradientClipping::Algorithm::value), real_of(json.at(3))},
          json.at(4),
          site_of(json.at(5)),
          site_of(json.at(6)),
          count_of(json.at(7)),
          count_of(json.at(8)),
          json.at(9)};
}

Json json_of(const MonitorTurn& turn) {
  return {turn.epoch, turn.step, turn.value, turn.own, turn.done};
}

MonitorTurn turn_of(const Json& json) {
  return {count_of(json.at(0)), count_of(json.at(1)), real_of(json.at(2)), json.at(3), json.at(4)};
}

Json json_of(const MonitorLog& monitor);
Json json_of(const CheckpointLog& checkpoint);

template <class T>
Json json_of_all(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) {
    list.push_back(json_of(value));
  }
  return list;
}

template <class T>
std::vector<T> all_of_json(const Json& list, T (*read)(const Json&)) {
  check_list(list);
  std::vector<T> values;
  for (const Json& json : list) {
    values.push_back(read(json));
  }
  return values;
}

Json json_of(const MonitorLog& monitor) {
  return {monitor.name, monitor.monitor, monitor.site.value, json_of_all(monitor.turns)};
}

MonitorLog monitor_of(const Json& json) {
  return {json.at(0), json.at(1), site_of(json.at(2)), all_of_json(json.at(3), turn_of)};
}

Json json_of(const CheckpointLog& checkpoint) {
  Json kept = Json::array();
  for (const auto& [file, score] : checkpoint.kept) {
    kept.push_back({file, score});
  }
  return {checkpoint.monitor,
          checkpoint.site.value,
          checkpoint.added_by_trainer,
          checkpoint.best,
          checkpoint.best_score ? Json(*checkpoint.best_score) : Json(nullptr),
          kept,
          checkpoint.last,
          checkpoint.saved};
}

CheckpointLog checkpoint_of(const Json& json) {
  CheckpointLog checkpoint;
  checkpoint.monitor = json.at(0);
  checkpoint.site = site_of(json.at(1));
  checkpoint.added_by_trainer = json.at(2);
  checkpoint.best = json.at(3);
  if (!json.at(4).is_null()) {
    checkpoint.best_score = real_of(json.at(4));
  }
  check_list(json.at(5));
  for (const Json& kept : json.at(5)) {
    checkpoint.kept.emplace_back(kept.at(0).get<std::string>(), real_of(kept.at(1)));
  }
  checkpoint.last = json.at(6);
  checkpoint.saved = count_of(json.at(7));
  return checkpoint;
}

}  // namespace

namespace {
Json json_of(const std::map<std::string, double>& values) {
  Json all = Json::array();
  for (const auto& [key, value] : values) {
    all.push_back({key, value});
  }
  return all;
}

std::map<std::string, double> values_by_key(const Json& json) {
  std::map<std::string, double> values;
  check_list(json);
  for (const Json& value : json) {
    values.emplace(value.at(0).get<std::string>(), real_of(value.at(1)));
  }
  return values;
}

Json rows_json(const RankLog& log) {
  Json rows = Json::array();
  for (const LoggerRow& row : log.logger.rows) {
    rows.push_back({row.step, json_of(row.values)});
  }
  return rows;
}

Json json_of(const std::optional<Resumption>& resumption) {
  return resumption
             ? Json{resumption->file, resumption->global_step, resumption->epoch, resumption->batch}
             : Json(nullptr);
}

std::optional<Resumption> resumption_of(const Json& json) {
  if (json.is_null()) {
    return std::nullopt;
  }
  return Resumption{json.at(0), count_of(json.at(1)), count_of(json.at(2)), count_of(json.at(3))};
}

Json rates_json(const std::vector<std::vector<double>>& rates) {
  Json all = Json::array();
  for (const std::vector<double>& of_optimizer : rates) {
    all.push_back(binary_of(std::span(of_optimizer)));
  }
  return all;
}

Json names_json(const std::map<std::string, HandedOver>& names) {
  Json all = Json::array();
  for (const auto& [name, handed_over] : names) {
    all.push_back({name, handed_over.times, handed_over.site.value});
  }
  return all;
}

std::map<std::string, HandedOver> names_of_json(const Json& json) {
  std::map<std::string, HandedOver> names;
  for (const Json& one : json) {
    names[one.at(0)] = {count_of(one.at(1)), site_of(one.at(2))};
  }
  return names;
}

}  // namespace

Json json_of_log(const RankLog& log) {
  return {{"metrics", json_of(log.metrics)},
          {"logger_rows", rows_json(log)},
          {"logger_row_count", log.logger.row_count},
          {"progress_bar", json_of(log.progress_bar)},
          {"logged", json_of_all(log.logged)},
          {"findings", json_of_all(log.findings)},
          {"handed_over", names_json(log.handed_over)},
          {"monitors", json_of_all(log.monitors)},
          {"checkpoints", json_of_all(log.checkpoints)},
          {"checkpoint_bytes", log.checkpoint_bytes.value_or(Bytes(-1)).own.count()},
          {"stopped_epoch", log.stopped_epoch.value_or(-1)},
          {"learning_rates", rates_json(log.learning_rates)},
          {"samples", json_of_all(log.samples)},
          {"samples_of_steps", binary_of(std::span(log.samples_of_steps))},
          {"transfers", json_of_all(log.transfers)},
          {"final_parameters", json_of_all(log.final_parameters)},
          {"final_parts", json_of_all(log.final_parts)},
          {"holds_parts", log.holds_parts},
          {"weight_updates", json_of_all(log.weight_updates)},
          {"known_differences", json_of_all(log.known_differences)},
          {"missing_loss", json_of(log.missing_loss)},
          {"skipped_steps", binary_of(std::span(log.skipped_steps))},
          {"compression_error", json_of(log.compression_error)},
          {"runs_trainer", log.runs_trainer},
          {"staleness", json_of(log.staleness)},
          {"steps", log.steps},
          {"epochs", log.epochs},
          {"found_no_batches", log.found_no_batches},
          {"resumption", json_of(log.resumption)},
          {"statements", log.statements},
          {"statement_limit_reached", log.statement_limit_reached}};
}

RankLog log_of_json(const Json& json) {
  RankLog log;
  log.metrics = values_by_key(json.at("metrics"));
  for (const Json& row : list_at(json, "logger_rows")) {
    log.logger.rows.push_back({count_of(row.at(0)), values_by_key(row.at(1))});
  }
  log.logger.row_count = count_of(json.at("logger_row_count"));
  log.progress_bar = values_by_key(json.at("progress_bar"));
  log.logged = all_of_json(json.at("logged"), logged_key_of);
  log.findings = all_of_json(json.at("findings"), finding_of);
  log.handed_over = names_of_json(json.at("handed_over"));
  log.monitors = all_of_json(json.at("monitors"), monitor_of);
  log.checkpoints = all_of_json(json.at("checkpoints"), checkpoint_of);
  if (const auto bytes = whole_of<int64_t>(json.at("checkpoint_bytes"), -1); bytes >= 0) {
    log.checkpoint_bytes = Bytes(bytes);
  }
  if (const auto epoch = whole_of<int64_t>(json.at("stopped_epoch"), -1); epoch >= 0) {
    log.stopped_epoch = epoch;
  }
  log.learning_rates = all_of_json(json.at("learning_rates"), values_of_binary<double>);
  log.samples = all_of_json(json.at("samples"), samples_of);
  log.samples_of_steps = values_of_binary<int64_t>(json.at("samples_of_steps"));
  log.transfers = all_of_json(json.at("transfers"), transfer_of);
  log.final_parameters = all_of_json(json.at("final_parameters"), values_of);
  log.final_parts = all_of_json(json.at("final_parts"), part_of);
  log.holds_parts = json.at("holds_parts");
  log.weight_updates = all_of_json(json.at("weight_updates"), update_of);
  log.known_differences = all_of_json(json.at("known_differences"), difference_of);
  log.missing_loss = missing_loss_of(json.at("missing_loss"));
  log.skipped_steps = values_of_binary<int64_t>(json.at("skipped_steps"));
  log.compression_error = number_of(json.at("compression_error"));
  log.runs_trainer = json.at("runs_trainer");
  log.staleness = staleness_of(json.at("staleness"));
  log.steps = count_of(json.at("steps"));
  log.epochs = count_of(json.at("epochs"));
  log.found_no_batches = json.at("found_no_batches");
  log.resumption = resumption_of(json.at("resumption"));
  log.statements = count_of(json.at("statements"));
  log.statement_limit_reached = json.at("statement_limit_reached");
  return log;
}

}  // namespace lockstep
