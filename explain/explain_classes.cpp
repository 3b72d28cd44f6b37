#include "explain/explain_classes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "explain/class_example_table.hpp"
#include "explain/explain_layers.hpp"
#include "explain/key_examples.hpp"
#include "io/scenario/classes/other_classes.hpp"
#include "model/metric/torchmetrics_names.hpp"
#include "model/trainer/framework/strategy_names.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

namespace {

constexpr ObjectRole roles[] = {
    ObjectRole::optimizer, ObjectRole::lr_scheduler, ObjectRole::callback, ObjectRole::launcher,
    ObjectRole::strategy,  ObjectRole::metric,       ObjectRole::layer,    ObjectRole::loss,
    ObjectRole::logger,    ObjectRole::profiler,     ObjectRole::plugin};

const ClassExample* example_of(ObjectRole role, std::string_view name) {
  const std::span<const ClassExample> examples =
      role == ObjectRole::metric ? metric_examples() : class_examples();
  const auto found = std::ranges::find_if(examples, [&](const ClassExample& example) {
    return example.role == role && example.name == name;
  });
  return found == examples.end() ? nullptr : &*found;
}

const AddedArgument* added_argument(ObjectRole role, std::string_view name) {
  const auto found = std::ranges::find_if(added_arguments(), [&](const AddedArgument& added) {
    return added.role == role && added.name == name;
  });
  return found == added_arguments().end() ? nullptr : &*found;
}

const ArgumentRow* find_argument(const std::vector<ArgumentRow>& rows, std::string_view name) {
  const auto found = std::ranges::find(rows, name, &ArgumentRow::name);
  return found == rows.end() ? nullptr : &*found;
}

std::string_view home_of(ObjectRole role) {
  switch (role) {
    case ObjectRole::optimizer: return "an optimizer of torch.optim";
    case ObjectRole::lr_scheduler: return "a scheduler of torch.optim.lr_scheduler";
    case ObjectRole::callback: return "a callback of Lightning";
    case ObjectRole::launcher: return "what starts the processes";
    case ObjectRole::strategy: return "a strategy of the Trainer";
    case ObjectRole::metric: return "a metric of TorchMetrics";
    case ObjectRole::layer: return "a layer of torch.nn";
    case ObjectRole::loss: return "a loss of torch.nn";
    case ObjectRole::logger: return "a logger of Lightning";
    case ObjectRole::profiler: return "a profiler of Lightning";
    case ObjectRole::plugin: return "a plugin of Lightning";
  }
  return "";
}

std::string_view spoken_name_of(ObjectRole role) {
  return role == ObjectRole::lr_scheduler ? "scheduler" : name_of(role);
}

std::string object_of(const ClassExample& example) {
  return example.arguments.empty() ? std::string(example.name)
                                   : fmt::format("{{{}: {}}}", example.name, example.arguments);
}

/// What a metric of a task is fed with.
struct MetricInput {
  std::string_view update = "quality";
  std::string_view values{};  ///< of the validation's samples
};

constexpr std::string_view columns_of_positive = "{score: random() + 0.1, target: sample % 3 + 1}";

struct InputOfMetric {
  std::string_view name;
  MetricInput input;
};

constexpr InputOfMetric inputs_of_metrics[] = {
    {"Perplexity",
     {"{metric: quality, preds: \"[output]\", target: \"[target]\"}", "{target: sample % 3}"}},
    {"MulticlassExactMatch",
     {"{metric: quality, preds: \"[target]\", target: \"[target]\"}", "{target: sample % 3}"}},
    {"CosineSimilarity", {"{metric: quality, preds: output, target: output}"}},
    {"ContinuousRankedProbabilityScore", {"{metric: quality, preds: output, target: target}"}},
    {"KLDivergence", {"{metric: quality, preds: softmax(output), target: softmax(output * 0.5)}"}},
    {"JensenShannonDivergence",
     {"{metric: quality, preds: softmax(output), target: softmax(output * 0.5)}"}},
    {"MeanSquaredLogError", {"quality", columns_of_positive}},
    {"TweedieDevianceScore", {"quality", columns_of_positive}},
    {"NormalizedRootMeanSquaredError",
     {"{metric: quality, preds: score, target: target * 1.0}", columns_of_positive}},
    {"SpearmanCorrCoef",
     {"{metric: quality, preds: score, target: target * 1.0}", columns_of_positive}},
};

MetricInput input_of(std::string_view metric) {
  const auto* const own = std::ranges::find(inputs_of_metrics, metric, &InputOfMetric::name);
  if (own != std::end(inputs_of_metrics)) {
    return own->input;
  }
  if (metric == "ExactMatch") {
    return input_of("MulticlassExactMatch");
  }
  if (metric.starts_with("Multiclass")) {
    return {"{metric: quality, preds: output}", "{target: sample % 3}"};
  }
  if (metric.starts_with("Multilabel")) {
    return {"{metric: quality, preds: output, target: output > 0}"};
  }
  if (metric.starts_with("Retrieval")) {
    return {"{metric: quality, indexes: query}",
            "{score: random(), target: sample % 2 == 0, query: sample // 4}"};
  }
  return {};
}

std::string lines_of_metric(const ClassExample& example) {
  const MetricInput input = input_of(example.name);
  const bool reads_output = input.update.find("output") != std::string_view::npos;
  return fmt::format(
      "{}data:\n  train: {{samples: 64}}\n  val: {{samples: 32, batch_size: 8{}{}}}\n"
      "metrics: {{quality: {}}}\n"
      "program:\n"
      "  validation_step: [{{update: {}}}]\n"
      "  on_validation_epoch_end: [{{compute: {{metric: quality, as: value}}}}, {{reset: "
      "quality}}]",
      reads_output ? "model: {input: [4], layers: [{Linear: [4, 3]}]}\n" : "",
      input.values.empty() ? "" : ", values: ", input.values, object_of(example), input.update);
}

StrategyTraits traits_of(std::string_view strategy) {
  const StrategyName* const row = find_strategy_name(strategy);
  return strategies().traits_of(row == nullptr || row->strategy.empty() ? strategy : row->strategy);
}

int devices_for(const StrategyTraits& traits) {
  constexpr int of_tpu_host = 8;
  return traits.layout == ProcessLayout::one_for_one_device ? 1
         : traits.drives_xla                                ? of_tpu_host
                                                            : 2;
}

std::string placed(const ClassExample& example) {
  const std::string object = object_of(example);
  switch (example.role) {
    case ObjectRole::metric: return lines_of_metric(example);
    case ObjectRole::strategy:
      return fmt::format("trainer: {{accelerator: {}, devices: {}, strategy: {}, max_epochs: 1}}",
                         traits_of(example.name).drives_xla ? "tpu" : "gpu",
                         devices_for(traits_of(example.name)), object);
    case ObjectRole::callback:
      return fmt::format(
          "trainer:\n  accelerator: gpu\n  devices: 2\n  strategy: ddp\n  max_epochs: 1\n"
          "  callbacks: [{}]",
          object);
    case ObjectRole::logger:
    case ObjectRole::profiler:
      return fmt::format("trainer: {{accelerator: gpu, devices: 2, {}: {}, max_epochs: 1}}",
                         name_of(example.role), object);
    default: return fmt::format("{}: {}", name_of(example.role), object);
  }
}

std::string lines_of(const ClassExample& example) {
  std::string lines = placed(example);
  if (!example.lines.empty()) {
    lines = std::string(example.lines) + "\n" + lines;
  }
  if (example.arguments.find("monitor") != std::string_view::npos) {
    lines +=
        "\ndata: {train: {samples: 64}, val: {samples: 32}}\n"
        "program:\n"
        "  validation_step: [forward, {log: {name: val_loss, value: loss, sync_dist: true}}]";
  }
  return lines;
}

KeyPage::Key key_of(ObjectRole role, const ArgumentRow& argument) {
  KeyPage::Key key{std::string(argument.name),
                   std::string(argument.type.empty() ? "any" : argument.type), "", "",
                   std::nullopt};
  if (const StrategyArgument* row = argument.of_strategy) {
    key.default_text = row->shown_default();
    key.meaning = row->meaning;
    key.use = row->use;
  } else if (const AddedArgument* added = added_argument(role, argument.name)) {
    key.default_text = added->default_text;
    key.meaning = added->meaning;
  }
  return key;
}

KeyPage page_of_class(ObjectRole role, const ClassRow& row) {
  KeyPage page;
  page.name = row.name;
  page.meaning = home_of(role);
  for (const ArgumentRow& argument : arguments_of(row)) {
    page.keys.push_back(key_of(role, argument));
  }
  if (role == ObjectRole::layer || role == ObjectRole::loss) {
    describe_layer(role, page);
    return page;
  }
  const ClassExample* example = example_of(role, row.name);
  if (example != nullptr && !example->meaning.empty()) {
    page.meaning += fmt::format(": {}", example->meaning);
  }
  page.is_modelled = example != nullptr;
  if (example != nullptr) {
    page.scenario = scenario_with(lines_of(*example));
  }
  return page;
}

// Between which versions, and what becomes of it.
std::string meaning_of(const StrategyName& strategy) {
  const auto text_of = [](const Version& version) {
    return fmt::format("{}.{}", version.major, version.minor);
  };
  if (strategy.until == Version{}) {
    return fmt::format("no strategy of any Trainer: {}; use {} (LS501)", strategy.gone,
                       strategy.instead);
  }
  std::string versions = "of Lightning";
  if (strategy.since > Version{}) {
    versions += fmt::format(" from {} on", text_of(strategy.since));
  }
  if (strategy.until < Version{99, 0, 0}) {
    versions += fmt::format(", before {}", text_of(strategy.until));
  }
  if (!strategy.used_to_be.empty()) {
    return fmt::format("a strategy {}: today's {}", versions, strategy.used_to_be);
  }
  return fmt::format("a strategy {}: {}{}", versions, strategy.refusal,
                     strategy.is_unmodelled ? "" : " (LS501)");
}

// What torch, Lightning or a library beside them has, and Lockstep has not.
KeyPage page_of_other(ObjectRole role, std::string_view name) {
  KeyPage page;
  page.name = name;
  const StrategyName* strategy = role == ObjectRole::strategy ? find_strategy_name(name) : nullptr;
  if (strategy != nullptr) {
    page.meaning = meaning_of(*strategy);
    page.is_modelled = !strategy->is_unmodelled;
    return page;
  }
  page.meaning = fmt::format("{} {} that PyTorch, Lightning or a library beside them has",
                             role == ObjectRole::optimizer ? "an" : "a", spoken_name_of(role));
  page.is_modelled = false;
  return page;
}

KeyPage page_of_unsupported(const TorchMetricsName& metric) {
  KeyPage page;
  page.name = metric.name;
  page.meaning = fmt::format("a metric of torchmetrics.{}: {}; {}", metric.package, metric.why_not,
                             remedy_of_unsupported(metric));
  page.is_modelled = false;
  return page;
}

KeyPage page_of_argument(std::string_view of, const AddedArgument& added,
                         const ArgumentRow& argument) {
  KeyPage page;
  page.name = fmt::format("{}.{}", of, added.name);
  page.keys.push_back(key_of(added.role, argument));
  page.meaning = page.keys.front().meaning;
  page.scenario = scenario_with(std::string(added.lines));
  return page;
}

// The first class of the role that takes the argument says its type.
std::optional<KeyPage> page_of_added(std::string_view of, const AddedArgument& added) {
  for (const ClassRow& row : classes(added.role)) {
    const std::vector<ArgumentRow> rows = arguments_of(row);
    if (const ArgumentRow* argument = find_argument(rows, added.name)) {
      return page_of_argument(of, added, *argument);
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<ObjectRole> explained_roles() { return {std::begin(roles), std::end(roles)}; }

std::optional<KeyPage> find_class_page(std::string_view name) {
  const std::optional<TorchMetricsName> metric = find_torchmetrics_class(name);
  if (metric && !metric->why_not.empty()) {
    return page_of_unsupported(*metric);
  }
  const size_t dot = name.find('.');
  const std::string_view holder = name.substr(0, dot);
  const std::string_view argument =
      dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
  for (const ObjectRole role : roles) {  // bagua.distributed.launch has dots of its own
    const ClassRow* const whole = argument.empty() ? nullptr : find_class(role, name);
    if (whole != nullptr) {
      return page_of_class(role, *whole);
    }
  }
  for (const ObjectRole role : roles) {
    const ClassRow* const row = find_class(role, holder);
    if (row == nullptr && holder != name_of(role)) {
      continue;
    }
    if (dot == std::string_view::npos) {
      return row == nullptr ? std::nullopt : std::optional(page_of_class(role, *row));
    }
    if (const ClassRow* const named = row == nullptr ? find_class(role, argument) : nullptr) {
      return page_of_class(role, *named);
    }
    const AddedArgument* const added = added_argument(role, argument);
    if (added != nullptr) {
      return page_of_added(holder, *added);
    }
    if (row != nullptr && find_argument(arguments_of(*row), argument) != nullptr) {
      return page_of_class(role, *row);
    }
  }
  for (const AddedArgument& added : added_arguments()) {
    if (added.name == name) {
      return page_of_added(name_of(added.role), added);
    }
  }
  for (const ObjectRole role : roles) {
    if (is_other_class(role, name)) {
      return page_of_other(role, name);
    }
  }
  return std::nullopt;
}

std::vector<std::string> added_argument_names() {
  std::vector<std::string> names;
  for (const AddedArgument& added : added_arguments()) {
    names.push_back(fmt::format("{}.{}", name_of(added.role), added.name));
  }
  return names;
}

}  // namespace lockstep::cli
