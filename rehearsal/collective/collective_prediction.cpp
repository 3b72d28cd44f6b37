#include "rehearsal/collective/collective_prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "model/cluster/presets.hpp"
#include "rehearsal/run/machine.hpp"
#include "rehearsal/run/one_run.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

constexpr const char* typed_cluster = "--cluster";

bool is_scenario_file(const std::string& text) {
  std::error_code ignored;
  const CaseSource source = split_case(text);
  return std::filesystem::exists(source.path, ignored) || source.path.ends_with(".yaml") ||
         source.path.ends_with(".yml");
}

// The cluster as a scenario, so that it is read, checked and reported like any other.
CaseSource typed_source(const std::string& cluster) {
  const std::string value =
      cluster.starts_with('{') ? cluster : fmt::format("{{preset: {}}}", cluster);
  CaseSource source;
  source.path = typed_cluster;
  source.reader = [value](const std::string& path,
                          size_t limit) -> std::variant<std::string, FileError> {
    if (path != typed_cluster) {
      return read_file_from_disk(path, limit);
    }
    return fmt::format("cluster: {}\nversion: 1\nprogram: {{main: [barrier]}}\n", value);
  };
  source.set.emplace_back("cluster.ranks=1");
  return source;
}

void refuse(AskedCollective& asked, std::string message, std::string remedy,
            const SourcePlace& place = {typed_cluster, 0, 0}) {
  Diagnostic diagnostic;
  diagnostic.place = place;
  diagnostic.message = std::move(message);
  diagnostic.remedy = std::move(remedy);
  asked.diagnostics.push_back(std::move(diagnostic));
}

bool adopt(AskedCollective& asked, const std::vector<Problem>& problems) {
  for (const Problem& problem : problems) {
    if (problem.stops()) {
      refuse(asked, problem.message, problem.remedy, problem.place);
    }
  }
  return asked.diagnostics.empty();
}

// Ranks and the nodes that they fill, one after the other.
bool place_members(AskedCollective& asked, const CollectiveQuestion& question,
                   const Cluster& cluster, int64_t ranks_of_scenario, sim::NcclMembers& members) {
  const int64_t local = cluster.node.devices - static_cast<int64_t>(cluster.occupied.size());
  if (local < 1) {
    refuse(asked, "no GPU of a node is free", "give the cluster more GPUs");
    return false;
  }
  members.ranks =
      question.ranks.value_or(ranks_of_scenario > 0 ? ranks_of_scenario : local * cluster.nodes);
  members.nodes = cluster.nodes;
  if (members.ranks > local * cluster.nodes) {
    refuse(asked,
           fmt::format("{} do not fit on {} of {} GPUs", plural(members.ranks, "rank"),
                       plural(cluster.nodes, "node"), local),
           "ask for fewer --ranks or more --nodes");
  } else if (members.ranks < cluster.nodes) {
    members.nodes = members.ranks;
  }
  if (members.ranks % members.nodes != 0) {
    refuse(asked,
           fmt::format("{} cannot be spread evenly over {}", plural(members.ranks, "rank"),
                       plural(members.nodes, "node")),
           "choose --ranks as a multiple of --nodes");
  }
  return asked.diagnostics.empty();
}

/// What the scenario of a question says.
struct AskedMachine {
  Machine machine;
  std::shared_ptr<const Scenario> scenario;
  int64_t ranks = 0;  ///< 0: the question says, or all GPUs
};

std::optional<AskedMachine> machine_asked(AskedCollective& asked,
                                          const CollectiveQuestion& question) {
  const bool is_file = is_scenario_file(question.cluster);
  CaseSource source = is_file ? split_case(question.cluster) : typed_source(question.cluster);
  source.set.insert(source.set.end(), question.set.begin(), question.set.end());
  if (question.nodes) {
    source.set.push_back(fmt::format("cluster.nodes={}", *question.nodes));
    source.option_of_key["cluster.nodes"] = "--nodes";
  }
  const LoadedScenarios loaded = source.load();
  asked.diagnostics = loaded.diagnostics;
  asked.sources = loaded.sources;
  if (!loaded.ok()) {
    return std::nullopt;
  }
  if (loaded.scenarios.size() > 1) {
    refuse(asked, "the scenario has several cases", "name one: --cluster FILE:CASE",
           {source.path, 0, 0});
    return std::nullopt;
  }
  const Preparation preparation = prepare(loaded.scenarios.front(), strategies());
  if (!adopt(asked, preparation.problems)) {
    return std::nullopt;
  }
  AskedMachine found{machine_of(preparation), preparation.scenario,
                     is_file ? preparation.options.world_size : 0};
  if (!adopt(asked, found.machine.problems)) {
    return std::nullopt;
  }
  if (found.machine.is_flat || found.machine.cluster.node.device.compute_capability == 0) {
    refuse(asked, "the cluster has no GPUs, and NCCL needs them",
           "name a preset with GPUs; `lockstep explain presets` lists them");
    return std::nullopt;
  }
  return found;
}

}  // namespace

std::optional<double> CollectiveRow::error() const {
  return measured_us ? std::optional(std::abs(price.time_us() - *measured_us) / *measured_us)
                     : std::nullopt;
}

AskedCollective understand(const CollectiveQuestion& question) {
  AskedCollective asked;
  const std::optional<AskedMachine> found = machine_asked(asked, question);
  if (!found) {
    return asked;
  }
  const Cluster& cluster = found->machine.cluster;
  for (const ClusterError& error : errors_of(cluster)) {
    refuse(asked, error.message, error.remedy);
  }
  sim::NcclPricing::Setup setup;
  if (!asked.diagnostics.empty() ||
      !place_members(asked, question, cluster, found->ranks, setup.members)) {
    return asked;
  }
  std::vector<sim::NcclVariable> variables = nccl_variables(*found->scenario);
  variables.insert(variables.end(), question.environment.begin(), question.environment.end());
  sim::NcclSettingsResult settings = sim::read_nccl_settings(variables);
  for (const sim::NcclSettingError& error : settings.errors) {
    refuse(asked, error.message, error.remedy, {"--env", 0, 0});
  }
  if (!asked.diagnostics.empty()) {
    return asked;
  }
  setup.cluster = cluster;
  setup.settings = settings.settings;
  setup.version = found->machine.nccl.version;
  setup.gpus_per_process = question.gpus_per_process;
  if (question.is_uncorrected) {
    setup.correction = sim::no_correction();
  }
  asked.pricing.emplace(setup);
  CollectivePrediction& prediction = asked.prediction;
  prediction.preset = cluster.name;
  prediction.ranks = setup.members.ranks;
  prediction.nodes = setup.members.nodes;
  prediction.system = fmt::format("{} x {} on {} of {}", prediction.ranks, cluster.node.device.name,
                                  plural(prediction.nodes, "node"), cluster.name);
  prediction.version = setup.version;
  prediction.path = std::string(sim::name_of(asked.pricing->path()));
  prediction.extrapolations = asked.pricing->extrapolations();
  prediction.ignored = std::move(settings.ignored);
  return asked;
}

CollectiveRow predicted_row(const sim::NcclPricing& pricing, OpKind kind, int64_t bytes) {
  constexpr int64_t element_bytes = 4;
  constexpr double bytes_per_us_and_GBps = 1000;
  const int64_t ranks = pricing.communicator().ranks;
  const int64_t parts = sim::larger_side(kind, Bytes(1), ranks).count();
  CollectiveRow row;
  row.bytes = bytes;
  const bool counts_parts =
      parts > 1 || kind == OpKind::reduce_scatter || kind == OpKind::all_to_all;
  row.count = bytes / element_bytes / (counts_parts ? ranks : 1);
  row.price = pricing.price(kind, Bytes(bytes / parts));
  if (row.price.time_us() > 0) {
    row.algorithm_GBps = static_cast<double>(bytes) / row.price.time_us() / bytes_per_us_and_GBps;
    row.bus_GBps = row.algorithm_GBps * sim::bus_factor(kind, ranks);
  }
  return row;
}

std::optional<double> median_error(const std::vector<CollectiveRow>& rows, int64_t least_bytes,
                                   int64_t most_bytes) {
  std::vector<double> errors;
  for (const CollectiveRow& row : rows) {
    if (row.bytes >= least_bytes && row.bytes < most_bytes && row.error()) {
      errors.push_back(*row.error());
    }
  }
  if (errors.empty()) {
    return std::nullopt;
  }
  std::ranges::sort(errors);
  const size_t middle = errors.size() / 2;
  return errors.size() % 2 == 1 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
}

}  // namespace lockstep::cli
