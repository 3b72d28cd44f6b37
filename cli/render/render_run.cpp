#include <fmt/format.h>

#include <algorithm>

#include "cli/render/advice_lines.hpp"
#include "cli/render/answer_lines.hpp"
#include "cli/render/call_list.hpp"
#include "cli/render/elastic_lines.hpp"
#include "cli/render/over_time/utilization.hpp"
#include "cli/render/pipeline_lines.hpp"
#include "cli/render/render.hpp"
#include "properties/finding.hpp"
#include "rehearsal/findings/compiled_graphs.hpp"
#include "rehearsal/findings/expert_load.hpp"
#include "rehearsal/findings/missing_values.hpp"
#include "rehearsal/findings/staleness.hpp"
#include "rehearsal/findings/weight_spread.hpp"
#include "rehearsal/measure/peak_moment.hpp"
#include "rehearsal/run/configuration.hpp"
#include "rehearsal/run/device_reserve.hpp"
#include "rehearsal/run/samples_per_step.hpp"
#include "rehearsal/run/servers.hpp"

namespace lockstep::cli {

namespace {

std::string shares_of_step(const Rehearsal& rehearsal) {
  const Results& results = rehearsal.results;
  const Preparation& preparation = rehearsal.run.preparation;
  const auto in_pipeline = std::ssize(preparation.pipeline_ranks);
  if (in_pipeline > 1) {
    return fmt::format("{} per pipeline of {} x {}", *results.device_batch_size,
                       plural(in_pipeline, "device"),
                       plural(preparation.data_parallel_size, "pipeline"));
  }
  if (preparation.network != nullptr && preparation.network.get() != preparation.options.network) {
    return fmt::format("{} per replica of {} x {}", *results.device_batch_size,
                       plural(results.devices / preparation.data_parallel_size, "device"),
                       plural(preparation.data_parallel_size, "replica"));
  }
  if (!preparation.placement.traits.divides_samples && results.devices > 1) {
    return fmt::format("the layers are divided among {}", plural(results.devices, "device"));
  }
  const bool has_servers = servers_of(rehearsal.run).size() > 0;
  return fmt::format("{} per device x {}", *results.device_batch_size,
                     has_servers ? plural(preparation.data_parallel_size, "worker")
                                 : plural(results.devices, "device"));
}

// Of the fullest step: where even that has fewer than the settings say, why.
std::string samples_of_step(const Rehearsal& rehearsal) {
  const Results& results = rehearsal.results;
  if (!results.effective_batch_size || !results.device_batch_size) {
    return "";
  }
  const std::optional<TrainerSpec>& trainer = rehearsal.run.preparation.scenario->trainer;
  const int64_t accumulated =
      trainer ? value_or(trainer->accumulate_grad_batches, int64_t{1}) : int64_t{1};
  const int64_t asked = configuration_of(rehearsal.run).effective_batch_size.value_or(0);
  std::string parts = shares_of_step(rehearsal);
  if (*results.effective_batch_size >= asked) {
    parts += accumulated > 1 ? fmt::format(" x {} accumulated", accumulated) : "";
  } else if (accumulated > 1) {
    parts += fmt::format("; the epoch ends before {} batches are accumulated", accumulated);
  } else {
    parts += " at most";
  }
  const int64_t samples = samples_per_step(rehearsal.run, results).value_or(0);
  if (samples == *results.effective_batch_size) {
    return fmt::format("{} per step ({})\n", plural(samples, "sample"), parts);
  }
  return fmt::format("{} per step of all workers ({}), {} per update\n", plural(samples, "sample"),
                     parts, *results.effective_batch_size);
}

std::string understood(const Rehearsal& rehearsal) {
  const Preparation& preparation = rehearsal.run.preparation;
  const Scenario& scenario = *rehearsal.scenario;
  const std::string_view backend = name_of_backend(preparation);
  if (scenario.is_bare_program()) {
    return fmt::format("program of {} · {} · {}\n", plural(preparation.options.world_size, "rank"),
                       rehearsal.run.machine.name, backend);
  }
  std::string text;
  if (preparation.network) {
    const Network& network = *preparation.network;
    text += fmt::format("{} ({} parameters) · ", network.name.empty() ? "model" : network.name,
                        count_text(network.parameter_elements()));
  }
  text +=
      fmt::format("{} · {} · {} · {} · {}\n", preparation.strategy, rehearsal.run.machine.name,
                  name_of(preparation.plan.activation_dtype), backend, versions_text(rehearsal));
  return text + samples_of_step(rehearsal);
}

std::string answers(const Rehearsal& rehearsal) {
  const Prediction& prediction = rehearsal.results.prediction;
  std::string out = "\n";
  if (prediction.step_time) {
    const std::string mfu = prediction.mfu ? fmt::format("MFU {:.2f}", *prediction.mfu) : "";
    const std::string range = range_text(prediction.step_time_low, prediction.step_time_high);
    out += line("step time", time_text(prediction.step_time->count()) + range, mfu);
    out += cycle_line(prediction);
  }
  if (prediction.samples_per_s) {
    std::string rate = number_text(*prediction.samples_per_s) + " samples/s";
    if (prediction.tokens_per_s) {
      rate += " · " + number_text(*prediction.tokens_per_s) + " tokens/s";
    }
    out += line("throughput", rate);
  }
  if (prediction.bubble) {
    out += line("bubble", percent_text(*prediction.bubble), bubble_text(prediction));
  }
  out += memory_line(rehearsal) + host_line(rehearsal) + drive_line(rehearsal) +
         largest_batch(rehearsal.results.advice);
  out += checkpoint_line(rehearsal);
  if (prediction.steps > 0) {
    out += steps_lines(prediction);
  } else {
    out +=
        line("total time", time_text(prediction.total_time.count()) +
                               range_text(prediction.total_time_low, prediction.total_time_high));
  }
  const auto ranks = static_cast<int64_t>(rehearsal.results.ranks.size());
  if (prediction.simulated_ranks < ranks) {
    out +=
        line(plural(ranks, "rank"), fmt::format("{} of them simulated: the others do what these do",
                                                prediction.simulated_ranks));
  }
  return out + cost_lines(rehearsal);
}

std::string so_far(const PartialResults& partial) {
  const std::string planned =
      partial.planned_steps ? fmt::format(" of {}", *partial.planned_steps) : "";
  std::string out =
      "\n" + line("so far", fmt::format("{}{} steps, {} of the training", partial.steps, planned,
                                        time_text(partial.total_time.count())));
  if (partial.step_time) {
    out += line("step time", time_text(partial.step_time->count()) + " of these");
  }
  return out + line("memory", bytes_text(partial.memory_peak.count()) + " on rank 0 so far");
}

std::string part(const std::string& name, Time time, Time whole, const Style& style,
                 const std::string& beside = "") {
  constexpr double bar_width = 40;
  const double fraction = whole > Time{} ? seconds(time) / seconds(whole) : 0;
  std::string bar;
  if (style.bars) {
    const auto length = static_cast<size_t>(fraction * bar_width + 0.5);
    bar = fmt::format("  {:<40}", std::string(length, '#'));
  }
  return fmt::format("  {:<26}{}  {:>9}  {:>5}{}\n", name, bar, time_text(time.count()),
                     percent_text(fraction), beside.empty() ? "" : "  (" + beside + ")");
}

std::string of_which(Time time, const char* what) {
  return time > Time{} ? fmt::format("{} {}", time_text(time.count()), what) : "";
}

std::string where_time_goes(const Prediction& prediction, bool offloads, const Style& style) {
  const Breakdown& parts = prediction.breakdown;
  const Time whole = parts.whole();
  std::string hidden;
  if (parts.communication > Time{}) {
    const double share = 1 - seconds(parts.exposed_communication) / seconds(parts.communication);
    hidden = fmt::format("{} total, {} overlapped", time_text(parts.communication.count()),
                         percent_text(share));
  }
  std::string out = prediction.step_time ? (prediction.steady ? "\nWhere a step goes (rank 0, "
                                                                "steady state)\n"
                                                              : "\nWhere the one step goes (rank "
                                                                "0, from the start)\n")
                                         : "\nWhere the time goes (rank 0)\n";
  out += part("compute", parts.compute, whole, style);
  out += part("exposed communication", parts.exposed_communication, whole, style, hidden);
  if (prediction.step_time) {
    out += part("optimizer", parts.optimizer, whole, style,
                of_which(parts.optimizer_on_host, "on the host"));
  }
  if (parts.data > Time{}) {
    out += part("waiting for data", parts.data, whole, style);
  }
  if (parts.offload > Time{}) {
    out += part(offloads ? "offload (PCIe)" : "copies (PCIe)", parts.offload, whole, style);
  }
  if (parts.drive > Time{}) {
    out += part("drive (NVMe)", parts.drive, whole, style);
  }
  if (parts.host > Time{}) {
    out += part("host", parts.host, whole, style);
  }
  return out +
         part("idle", parts.idle, whole, style, of_which(parts.waiting, "waiting for other ranks"));
}

std::string beside_peak(const Rehearsal& rehearsal) {
  const DeviceReserve reserve = reserve_of(rehearsal.run, 0);
  if (reserve.total() == Bytes{}) {
    return "";
  }
  std::string out = fmt::format("  beside the peak, estimated: CUDA context {}",
                                bytes_text(reserve.cuda_context.count()));
  if (reserve.nccl > Bytes{}) {
    out += fmt::format(" · NCCL {}", bytes_text(reserve.nccl.count()));
  }
  return out + "\n";
}

std::string where_memory_goes(const Rehearsal& rehearsal) {
  const ByRank<RankResults>& ranks = rehearsal.results.ranks;
  if (ranks.empty() || ranks.front().memory.peak == Bytes{}) {
    return "";
  }
  std::string parts;
  for (int purpose = 0; purpose < purpose_count; ++purpose) {
    const Bytes bytes = ranks.front().memory.peak_by_purpose[static_cast<size_t>(purpose)];
    if (bytes > Bytes{}) {
      std::string name(name_of(static_cast<Purpose>(purpose)));
      std::replace(name.begin(), name.end(), '_', ' ');
      parts += fmt::format("{}{} {}", parts.empty() ? "" : " · ", name, bytes_text(bytes.count()));
    }
  }
  const std::optional<PeakMoment>& at = ranks.front().peak_at;
  return fmt::format("\nWhere memory goes (rank 0, at its peak{})\n  {}\n",
                     at ? ": " + text_of(*at) : "", parts) +
         beside_peak(rehearsal);
}

std::string transfers(const Rehearsal& rehearsal) {
  if (rehearsal.results.ranks.empty() || rehearsal.results.ranks.front().transfers.empty()) {
    return "";
  }
  std::string out = rehearsal.results.prediction.step_time ? "\nTransfers of a step (rank 0)\n"
                                                           : "\nTransfers (rank 0)\n";
  for (const TransferCount& transfer : rehearsal.results.ranks.front().transfers) {
    const bool copies = transfer.kind == OpKind::copy;
    out += fmt::format("  {:<16} {:>8}  {:>10}  {}\n", name_of(transfer.kind),
                       fmt::format("{} x", transfer.count), bytes_text(transfer.bytes),
                       copies ? "between " + transfer.group : "group " + transfer.group);
  }
  return out;
}

std::string calibrated_basis(const CalibrationUse& use) {
  std::string out = fmt::format(" calibrated on {}", text_of(use));
  if (use.ranks_on_node > use.origin.ranks) {
    out += fmt::format("; {} share a host here, more than were measured",
                       plural(use.ranks_on_node, "rank"));
  }
  if (!use.not_measured.empty()) {
    out += fmt::format(". From data sheets, not measured and outside the range: {}",
                       fmt::join(use.not_measured, ", "));
  }
  return out + " (-v shows the source of each figure).\n      ";
}

std::string not_modelled(const Rehearsal& rehearsal) {
  if (rehearsal.run.calibration) {
    return " Not modelled: contention between concurrent kernels and communication other than for "
           "links, batches built on the host, fragmentation, disk.\n";
  }
  return rehearsal.scenario->is_bare_program()
             ? " Not modelled: launch and protocol overhead of the library.\n"
             : " Not modelled: fragmentation of memory, disk, clock changes.\n";
}

bool is_of_fitted_kernels(const std::string& line) {
  return line.find("kernels by shape") != std::string::npos;
}

std::string basis(const Rehearsal& rehearsal, bool verbose) {
  std::string out = "basis:";
  const std::vector<std::string>& lines = rehearsal.run.basis;
  if (rehearsal.run.calibration && !verbose) {
    out += calibrated_basis(*rehearsal.run.calibration);
  } else if (const auto fitted = std::ranges::find_if(lines, is_of_fitted_kernels);
             fitted != lines.end() && !verbose) {
    out += fmt::format(" {}. Use -v for details.\n      ", *fitted);
  } else if (rehearsal.scenario->is_bare_program() || verbose) {
    for (const std::string& text : lines) {
      out += fmt::format(" {}\n      ", text);
    }
  } else {
    out += fmt::format(
        " Estimates use vendor data sheets of {} (not calibrated), so no error range is given. "
        "Use -v for details.\n      ",
        rehearsal.run.machine.cluster.node.device.name);
  }
  return out + not_modelled(rehearsal);
}

}  // namespace

std::string render_run(const Rehearsal& rehearsal, const Style& style, bool verbose) {
  if (!rehearsal.ran()) {
    return render_findings(rehearsal, style) + render_undecided(rehearsal, style) +
           render_expectations(rehearsal, style);
  }
  std::string out = understood(rehearsal);
  const std::string why_not = rehearsal.why_no_prediction();
  const bool predicts = why_not.empty() && rehearsal.undecided.empty();
  if (predicts) {
    out += answers(rehearsal);
    out += where_time_goes(rehearsal.results.prediction, offloads(rehearsal), style);
    out += where_memory_goes(rehearsal);
    out += transfers(rehearsal);
    out += verbose ? render_pipeline(rehearsal) + render_devices(rehearsal) : "";
    out += verbose ? render_utilization(rehearsal) + render_calls(rehearsal) : "";
    out += what_would_help(rehearsal.results.advice);
  } else if (!why_not.empty() && !rehearsal.results.partial) {
    out += fmt::format("\n  no prediction: {}\n", why_not) +
           what_would_fit(rehearsal.results.advice,
                          rehearsal.results.ranks.empty()
                              ? Bytes{}
                              : rehearsal.results.ranks.front().memory.capacity);
  }
  if (rehearsal.results.partial) {
    out += so_far(*rehearsal.results.partial);
  }
  out += render_elastic(rehearsal);
  if (const std::string missing = missing_values(rehearsal.run); !missing.empty()) {
    out += "\n  not computed: " + missing + "\n";
  }
  const std::string measured = weight_spread_text(rehearsal.run) + staleness_text(rehearsal.run) +
                               compiled_graphs_text(rehearsal.run) +
                               expert_load_text(rehearsal.run, verbose);
  out += measured.empty() ? "" : "\n" + measured;
  const std::string findings = render_findings(rehearsal, style);
  out += findings.empty() ? "" : "\n" + findings;
  out += rehearsal.undecided.empty() ? "" : "\n" + render_undecided(rehearsal, style);
  const std::string expectations = render_expectations(rehearsal, style);
  out += (findings.empty() ? "\n" : "") + expectations;
  if (predicts) {
    out += basis(rehearsal, verbose);
  }
  out += fmt::format("next: lockstep verify {}\n", title_of(rehearsal));
  return out;
}

}  // namespace lockstep::cli
