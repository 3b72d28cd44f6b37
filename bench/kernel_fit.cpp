// Fits the constants of sim/cost/kernel_constants.cpp to the rows of data/throughput that scenarios
// express, and judges each source by constants that were fitted without it.
//
//   build/bin/kernel_fit > sim/cost/kernel_fits.cpp      (errors go to standard error)
//
// The loss is the sum over sources of the mean |log(predicted / measured time)| of their rows,
// times 20, and for each term the square of the logarithm of its distance from what is usual, in
// spreads. It is minimized by coordinate descent with shrinking steps, so the same rows give the
// same values. A row's communication is that of one simulation: what compute hides grows with its
// time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "model/cluster/software.hpp"
#include "rehearsal/accuracy/row_scenario.hpp"
#include "rehearsal/case_source.hpp"
#include "rehearsal/measure/measure.hpp"
#include "rehearsal/run/kernels.hpp"
#include "sim/cost/kernel_fits.hpp"
#include "sim/cost/kernel_ranges.hpp"

namespace lockstep::cli {

namespace {

/// Layers that are alike, which cost the same.
struct CountedLayer {
  Layer layer;
  int64_t count = 0;
};

struct FitRow {
  std::string id{};
  std::string source{};
  sim::KernelMachine machine{};
  std::vector<CountedLayer> layers{};
  DType dtype = DType::fp32;
  int64_t samples = 1;
  int64_t accumulated = 1;
  bool recomputes = false;
  Bytes update{};
  double base_compute_s = 0;  ///< simulated with the roofline
  double base_exposed_s = 0;
  double base_communication_s = 0;
  double measured_s = 0;
  std::string software{};  ///< the name of its profile
  bool convolves = false;
};

std::string key_of_layer(const Layer& layer) {
  std::string key = fmt::format("{}|{}|{}|{}|{}", name_of(layer.kind),
                                lockstep::text_of(layer.input), lockstep::text_of(layer.output),
                                layer.weight_elements, layer.parameter_elements());
  for (const Work& work : layer.work) {
    key += fmt::format("|{} {} {}", work.flops.count(), work.elements, work.runs);
  }
  return key;
}

std::vector<CountedLayer> counted_layers(const Network& network) {
  std::map<std::string, size_t> places;
  std::vector<CountedLayer> layers;
  for (const Layer& layer : network.layers) {
    const auto [place, is_new] = places.emplace(key_of_layer(layer), layers.size());
    if (is_new) {
      layers.push_back({layer, 0});
    }
    ++layers[place->second].count;
  }
  return layers;
}

DType dtype_of(const std::string& precision) {
  if (precision.starts_with("bf16")) {
    return DType::bf16;
  }
  return precision.starts_with("16") ? DType::fp16 : DType::fp32;
}

int64_t number_after(const std::string& yaml, const std::string& key) {
  const size_t at = yaml.find(key);
  return at == std::string::npos ? 1 : std::stol(yaml.substr(at + key.size()));
}

std::optional<FitRow> fit_row(const ThroughputRow& published) {
  const RowScenario scenario = scenario_of(published);
  // The estimate of a step is that of one device: it knows neither pipelines nor layers that are
  // cut.
  const auto names = [&](const char* part) {
    return scenario.yaml.find(part) != std::string::npos;
  };
  if (scenario.yaml.empty() || names("PipelineStrategy") || names("ModelParallelStrategy") ||
      names("MegatronStrategy")) {
    return std::nullopt;
  }
  CaseSource source;
  source.path = "row.yaml";
  source.reader = [&](const std::string&, size_t) {
    return std::variant<std::string, FileError>(scenario.yaml);
  };
  const LoadedScenarios loaded = source.load();
  RunRequest request;
  request.arithmetic = Arithmetic::never;
  if (!loaded.ok()) {
    return std::nullopt;
  }
  const OneRun run = run_once(loaded.scenarios.front(), request);
  if (!run.ran) {
    return std::nullopt;
  }
  const Prediction prediction = measure(run).prediction;
  const bool is_sharded = scenario.yaml.find("FSDPStrategy") != std::string::npos;
  FitRow row{.id = published.id(), .source = published.source};
  const KernelChoice software = *kernel_choice(scenario.group.software);
  row.machine =
      *kernel_machine(software, loaded.scenarios.front(), run.machine.cluster.node.device);
  row.machine.gpus = scenario.group.gpus;
  row.layers = counted_layers(*run.preparation.network);
  row.dtype = dtype_of(scenario.group.precision);
  row.samples = number_after(scenario.yaml, "batch_size: ");
  row.accumulated = number_after(scenario.yaml, "accumulate_grad_batches: ");
  row.recomputes = scenario.yaml.find("activation_checkpointing: full") != std::string::npos;
  int64_t parameters = 0;
  for (const CountedLayer& each : row.layers) {
    parameters += each.layer.parameter_elements() * each.count;
  }
  const int64_t touched = scenario.yaml.find("SGD") != std::string::npos ? 20 : 28;
  row.update = Bytes(parameters * touched / (is_sharded ? scenario.group.gpus : 1));
  row.base_compute_s = seconds(prediction.breakdown.compute + prediction.breakdown.optimizer);
  row.base_exposed_s = seconds(prediction.breakdown.exposed_communication);
  row.base_communication_s = seconds(prediction.breakdown.communication);
  row.software = scenario.group.software;
  row.convolves = sim::convolves(*run.preparation.network);
  row.measured_s = static_cast<double>(row.samples * row.accumulated * scenario.group.gpus) /
                   scenario.samples_per_s;
  return row;
}

double compute_seconds(const FitRow& row, const sim::KernelConstants& constants) {
  sim::KernelMachine machine = row.machine;
  machine.constants = constants;
  double sum = 0;
  for (const CountedLayer& each : row.layers) {
    const Layer& layer = each.layer;
    sim::LayerPass pass{.layer = &layer, .samples = row.samples, .dtype = row.dtype};
    if (layer.kind == LayerKind::residual_shortcut || !layer.work_of(Pass::forward).runs) {
      continue;
    }
    const Bytes weights(layer.parameter_elements() * size_of(DType::fp32));
    pass.cast = row.dtype == DType::fp32 ? Bytes{} : weights;
    pass.traffic = moved_bytes(layer, Pass::forward, row.samples, row.dtype);
    sum += sim::seconds_of_pass(machine, pass) * static_cast<double>(each.count) *
           (row.recomputes ? 2 : 1);
    pass.is_backward = true;
    pass.traffic = moved_bytes(layer, Pass::input_gradient, row.samples, row.dtype) +
                   moved_bytes(layer, Pass::weight_gradient, row.samples, row.dtype);
    if (layer.work_of(Pass::input_gradient).runs || layer.work_of(Pass::weight_gradient).runs) {
      sum += sim::seconds_of_pass(machine, pass) * static_cast<double>(each.count);
    }
  }
  return (sum * static_cast<double>(row.accumulated) +
          sim::seconds_of_update(machine, row.update)) *
         sim::slowest_of(machine);
}

double step_seconds(const FitRow& row, const sim::KernelConstants& constants) {
  const double compute = compute_seconds(row, constants);
  const double hidden = row.base_communication_s - row.base_exposed_s;
  const double exposed = std::max(std::min(row.base_exposed_s, 0.05 * row.base_communication_s),
                                  row.base_communication_s - hidden * compute / row.base_compute_s);
  const double beside = std::max(0.0, row.base_communication_s - exposed);
  return compute + std::max(0.0, exposed) + constants[sim::KernelTerm::contention] * beside;
}

double loss_of(const std::vector<const FitRow*>& rows, const sim::KernelConstants& constants) {
  std::map<std::string, std::pair<double, int>> errors;
  for (const FitRow* row : rows) {
    auto& [sum, count] = errors[row->source];
    sum += std::abs(std::log(step_seconds(*row, constants) / row->measured_s));
    ++count;
  }
  double loss = 0;
  for (const auto& [source, error] : errors) {
    loss += 20 * error.first / error.second;
  }
  for (const sim::KernelTermEntry& term : sim::kernel_terms()) {
    const double distance = std::log(constants[term.term] / term.usual) / std::log(term.spread);
    loss += distance * distance;
  }
  return loss;
}

sim::KernelConstants fit_to(const std::vector<const FitRow*>& rows, sim::KernelConstants best) {
  double least = loss_of(rows, best);
  for (double step = 0.3; step > 0.01; step *= 0.6) {
    for (int turn = 0; turn < 2; ++turn) {
      for (double& value : best.values) {
        for (const double factor : {std::exp(step), std::exp(-step)}) {
          const double before = value;
          value *= factor;
          const double loss = loss_of(rows, best);
          if (loss < least) {
            least = loss;
            break;
          }
          value = before;
        }
      }
    }
  }
  return best;
}

void tell(const std::string& name, const std::vector<double>& ratios) {
  std::vector<double> errors;
  for (const double ratio : ratios) {
    errors.push_back(std::abs(ratio - 1));  // of throughput: predicted / measured
  }
  std::ranges::sort(errors);
  double sum = 0;
  for (const double error : errors) {
    sum += error;
  }
  std::cerr << fmt::format(
      "{:<24} {:>4} rows  mean {:>5.1f} %  median {:>5.1f} %  90 % {:>5.1f} %\n", name,
      errors.size(), 100 * sum / static_cast<double>(errors.size()),
      100 * errors[errors.size() / 2], 100 * errors[errors.size() * 9 / 10]);
}

std::string entry_text(const std::string& without, const sim::KernelConstants& constants,
                       size_t rows) {
  std::string text = fmt::format("    {{\"{}\",\n     {{", without);
  for (size_t place = 0; place < constants.values.size(); ++place) {
    text += fmt::format("{}{:.4g}",
                        place == 0        ? ""
                        : place % 10 == 0 ? ",\n      "
                                          : ", ",
                        constants.values[place]);
  }
  return text + fmt::format("}},\n     {}}},\n", rows);
}

/// Measured / predicted times by software and by whether the network convolves; of all software
/// under an empty name.
using HeldOut = std::map<std::pair<std::string, bool>, std::vector<double>>;

std::string ranges_text(const HeldOut& held_out) {
  constexpr size_t enough_rows = 20;
  std::string text;
  for (auto [of, ratios] : held_out) {
    if (ratios.size() < enough_rows) {
      continue;
    }
    std::ranges::sort(ratios);
    const auto at = [&ratios](double part) {
      return ratios[static_cast<size_t>(part * static_cast<double>(ratios.size() - 1))];
    };
    text += fmt::format("    {{\"{}\", {}, {}, {:.3g}, {:.3g}}},\n", of.first, of.second,
                        ratios.size(), at(0.05), at(0.95));
  }
  return text;
}

std::vector<FitRow> load_rows() {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(LOCKSTEP_SOURCE_DIR "/data/throughput")) {
    files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  std::vector<FitRow> rows;
  for (const std::string& file : files) {
    for (const ThroughputRow& published : read_throughput_table(file).rows) {
      if (auto row = fit_row(published)) {
        rows.push_back(std::move(*row));
      }
    }
    std::cerr << rows.size() << " rows up to " << file << "\n";
  }
  return rows;
}

void fit_all() {
  const std::vector<FitRow> rows = load_rows();
  std::vector<const FitRow*> all;
  std::set<std::string> sources;
  for (const FitRow& row : rows) {
    all.push_back(&row);
    sources.insert(row.source);
  }
  const sim::KernelConstants fitted = fit_to(all, sim::usual_kernel_constants());
  std::string entries;
  std::vector<double> held_out;
  HeldOut by_kind;
  std::vector<double> inside;
  std::vector<double> usual;
  for (const FitRow& row : rows) {
    inside.push_back(row.measured_s / step_seconds(row, fitted));
    usual.push_back(row.measured_s / step_seconds(row, sim::usual_kernel_constants()));
  }
  for (const std::string& source : sources) {
    std::vector<const FitRow*> others;
    std::ranges::copy_if(all, std::back_inserter(others),
                         [&](const FitRow* row) { return row->source != source; });
    // From the usual values, as the fit to all: nothing of the left out source may stay.
    const sim::KernelConstants constants = fit_to(others, sim::usual_kernel_constants());
    std::vector<double> own;
    for (const FitRow& row : rows) {
      if (row.source == source) {
        own.push_back(row.measured_s / step_seconds(row, constants));
        by_kind[{row.software, row.convolves}].push_back(own.back());
        by_kind[{"", row.convolves}].push_back(own.back());
      }
    }
    tell(source, own);
    held_out.insert(held_out.end(), own.begin(), own.end());
    entries += entry_text(source, constants, others.size());
  }
  tell("held out", held_out);
  tell("fitted to all", inside);
  tell("usual values", usual);
  std::cout
      << "// Printed by bench/kernel_fit.cpp.\n#include \"sim/cost/kernel_fits.hpp\"\n\n#include "
         "\"sim/cost/kernel_ranges.hpp\"\n\n"
         "namespace lockstep::sim {\n\nnamespace {\n\nconstexpr KernelFitEntry "
         "kernel_fit_entries[] = {\n"
      << entry_text("", fitted, rows.size()) << entries
      << "};\n\nconstexpr KernelRange kernel_range_entries[] = {\n"
      << ranges_text(by_kind)
      << "};\n\n}  // namespace\n\nstd::span<const KernelFitEntry> kernel_fits() { return "
         "kernel_fit_entries; }\nstd::span<const KernelRange> kernel_ranges() { return "
         "kernel_range_entries; }\n\n}  // namespace lockstep::sim\n";
  for (const sim::KernelTermEntry& term : sim::kernel_terms()) {
    std::cerr << fmt::format("| `{}` | {:g} | {:.4g} |\n", term.name, term.usual,
                             fitted[term.term]);
  }
}

}  // namespace

}  // namespace lockstep::cli

int main() { lockstep::cli::fit_all(); }
