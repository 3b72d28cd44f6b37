#include "rehearsal/measure/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/gloo_outcome.hpp"
#include "properties/invariants/equals_single_device.hpp"
#include "properties/logged/rounding.hpp"
#include "rehearsal/elastic/attempts.hpp"
#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/measure/measure.hpp"
#include "rehearsal/measure/prediction_range.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

constexpr size_t differences_told = 3;

void differ(Point& point, std::string text) {
  point.equal = false;
  if (point.differences.size() < differences_told) {
    point.differences.push_back(std::move(text));
  }
}

std::string text_of(const RankEnd& end) {
  switch (end.kind) {
    case RankEnd::Kind::finished: return "finished";
    case RankEnd::Kind::raised: return "raised: " + end.message;
    case RankEnd::Kind::stuck: return "stuck";
    case RankEnd::Kind::lost: return "lost";
    case RankEnd::Kind::failed: return "failed";
  }
  return "";
}

// Compares two findings, without times and texts that differ by world.
std::string key_of(const Finding& finding) {
  std::string key =
      fmt::format("{} {} {} {}", finding.code, finding.group, finding.call, finding.ranks.phrase());
  for (const FindingSite& site : finding.sites) {
    key += fmt::format(" {}", site.site.value);
  }
  return key;
}

// Final parameters and logged metrics of all ranks.
// Those of ranks that were lost `in` the real run are gone with their processes.
std::vector<NamedValues> values_of(const OneRun& run, const OneRun& in) {
  std::vector<NamedValues> values = parameters_of(run);
  const ByRank<RankLog>& ranks = run.preparation.log->ranks;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const auto& [key, value] : ranks[rank].metrics) {
      values.push_back({key, static_cast<int32_t>(rank), Values::of(DType::fp64, {value})});
    }
  }
  std::erase_if(values, [&in](const NamedValues& value) {
    return in.result.ends[static_cast<size_t>(value.rank)].kind == RankEnd::Kind::lost;
  });
  return values;
}

// Threads of a rank call in a different order in each run: what that order shows, as the launch of
// two groups' kernels, one run need not have in common with another.
bool shows_order_of_threads(const Finding& finding, const OneRun& run) {
  const std::vector<int32_t> ranks = finding.ranks.ranks();
  return finding.code == "LS106" && finding.level == Level::warning &&
         std::ranges::any_of(ranks,
                             [&run](int32_t rank) { return run.result.journal->lanes(rank) > 1; });
}

Point outcome(const OneRun& real, const std::vector<Finding>& real_findings,
              const OneRun& simulated) {
  Point point{"outcome"};
  for (size_t rank = 0; rank < real.result.ends.size(); ++rank) {
    const RankEnd& left = real.result.ends[rank];
    const RankEnd& right = simulated.result.ends[rank];
    if (left.kind != right.kind) {
      differ(point,
             fmt::format("rank {}: real {}, simulated {}", rank, text_of(left), text_of(right)));
    }
  }
  const std::vector<Finding> expected = findings_of(simulated, World::simulated);
  const auto missing = [&](const std::vector<Finding>& from, const std::vector<Finding>& in,
                           const char* where) {
    for (const Finding& finding : from) {
      const bool of_set_up = finding.code.starts_with("LS50");  // reported before either world ran
      const bool by_chance = shows_order_of_threads(finding, real);
      if (!of_set_up && !by_chance && std::none_of(in.begin(), in.end(), [&](const Finding& other) {
            return key_of(other) == key_of(finding);
          })) {
        differ(point, fmt::format("{} finds {}: {}", where, finding.code, finding.title));
      }
    }
  };
  missing(real_findings, expected, "only the real run");
  missing(expected, real_findings, "only the simulation");
  if (real.result.hung && point.equal &&
      std::any_of(real_findings.begin(), real_findings.end(), torch_does_not_wait)) {
    point.not_compared =
        "both wait; torch over Gloo ends a process there, or goes on: see the finding";
  }
  return point;
}

Point calls(const OneRun& real, const OneRun& simulated) {
  Point point{"calls"};
  for (const JournalDifference& difference :
       differences(*real.result.journal, *simulated.result.journal, differences_told)) {
    differ(point, fmt::format("rank {}, lane {}, row {}: {}", difference.rank, difference.lane,
                              difference.row, difference.text));
  }
  point.extent = fmt::format("{}", real.result.operations);
  return point;
}

/// What was seen of all values so far.
struct Seen {
  bool any = false;
  bool bit_for_bit = true;
  double bound = 0;         ///< the largest that was needed
  int64_t beyond = 0;       ///< elements that are further apart, and may be (UpdateSensitivity)
  double bound_beyond = 0;  ///< the largest of theirs

  std::string text() const {
    std::string text = fmt::format("within the rounding bound, {:.2g}", bound);
    if (beyond > 0) {
      text += fmt::format("; {} whose gradient is rounding alone, {:.2g}",
                          plural(beyond, "element"), bound_beyond);
    }
    return text;
  }
};

void compare_values(Point& point, Seen& seen, const NamedValues& real, const NamedValues& expected,
                    const EqualityRule& rule, DType computed_in) {
  const Values& simulated = expected.values;
  seen.any = true;
  if (real.values == simulated) {
    return;
  }
  seen.bit_for_bit = false;
  if (real.values.size() != simulated.size() || real.values.dtype() != simulated.dtype()) {
    return differ(point,
                  fmt::format("rank {}: {} has a different type or size", real.rank, real.name));
  }
  double magnitude = 0;
  for (int64_t i = 0; i < simulated.size(); ++i) {
    magnitude =
        std::max({magnitude, std::abs(real.values.number(i)), std::abs(simulated.number(i))});
  }
  const double common = rounding_bound(rule, computed_in, magnitude);
  seen.bound = std::max(seen.bound, common);
  for (int64_t i = 0; i < simulated.size(); ++i) {
    const double left = real.values.number(i);
    const double right = simulated.number(i);
    if (!beyond_rounding(left, right, common)) {
      continue;
    }
    const double bound = rounding_bound(rule, computed_in, magnitude, expected.sensitivity,
                                        expected.sensitivity_begin + i);
    ++seen.beyond;
    seen.bound_beyond = std::max(seen.bound_beyond, bound);
    if (beyond_rounding(left, right, bound)) {
      return differ(point, fmt::format("rank {}: {}[{}] is {} and {} simulated; rounding explains "
                                       "{:.3g}",
                                       real.rank, real.name, i, left, right, bound));
    }
  }
}

Point values(const OneRun& real, const OneRun& simulated) {
  Point point{"values"};
  if (!simulated.preparation.options.numerics && real.preparation.options.numerics) {
    point.not_compared = simulated.preparation.why_without_values;
    return point;
  }
  Seen seen;
  const EqualityRule rule = equality_rule(simulated);
  const std::vector<NamedValues> left = values_of(real, real);
  const std::vector<NamedValues> right = values_of(simulated, real);
  for (const NamedValues& one : left) {
    const auto other = std::find_if(right.begin(), right.end(), [&one](const NamedValues& each) {
      return each.rank == one.rank && each.name == one.name &&
             each.first_element == one.first_element;
    });
    if (other != right.end()) {
      // A metric is reported as a number of 64 bits, and made of what the model computed.
      const bool of_model =
          simulated.preparation.network != nullptr && other->values.dtype() == DType::fp64;
      compare_values(point, seen, one, *other, rule,
                     of_model ? simulated.preparation.plan.parameter_dtype : other->values.dtype());
    } else {
      differ(point, fmt::format("rank {}: only the real run has {}", one.rank, one.name));
    }
  }
  if (right.size() > left.size()) {
    differ(point, "the simulation has values that the real run does not have");
  }
  point.extent = !seen.any ? "there are none" : seen.bit_for_bit ? "bit for bit" : seen.text();
  return point;
}

Bytes peak_of(const std::map<DeviceId, DeviceMemory>& devices, DeviceId device) {
  const auto found = devices.find(device);
  return found == devices.end() ? Bytes(0) : found->second.peak;
}

Point memory(const OneRun& real, const OneRun& simulated,
             const std::optional<HeldTensors>& tensors) {
  Point point{"memory"};
  for (size_t rank = 0; rank < real.result.memory.size(); ++rank) {
    if (real.result.ends[rank].kind == RankEnd::Kind::lost) {
      continue;  // what it knew went with it
    }
    const auto& left = real.result.memory[rank];
    const auto& right = simulated.result.memory[rank];
    std::map<DeviceId, DeviceMemory> either = left;
    either.insert(right.begin(), right.end());
    for (const auto& [device, held] : either) {
      const Bytes here = peak_of(left, device);
      const Bytes there = peak_of(right, device);
      if (here != there) {
        differ(point, fmt::format("rank {}, device {}: peak {} B, simulated {} B", rank,
                                  device.value, here.count(), there.count()));
      }
    }
  }
  if (tensors) {
    const auto text = [](Bytes bytes) { return bytes_text(bytes.count()); };
    point.extent = fmt::format("{} accounted, LibTorch's tensors held {}", text(tensors->accounted),
                               text(tensors->held));
    if (!tensors->explained()) {
      differ(point,
             fmt::format("rank {}: LibTorch's tensors held {}; {} is accounted, and graphs and "
                         "kernels explain {} more",
                         tensors->rank, text(tensors->held), text(tensors->accounted),
                         text(tensors->allowance)));
    }
  }
  return point;
}

}  // namespace

bool Comparison::equal() const {
  return not_compared.empty() &&
         std::all_of(points.begin(), points.end(), [](const Point& point) { return point.equal; });
}

namespace {

// Of a job whose launcher starts ranks again: every attempt up to that of the real run, each from
// what the simulated one before it has saved. Gives the scenario of the last and fills in where it
// begins; null: there is no such attempt.
std::shared_ptr<const Scenario> simulate_attempts(const Scenario& scenario, int32_t number,
                                                  RunRequest& request) {
  const RunAttempt run = [&request](const Scenario& own, const Attempt& attempt) {
    RunRequest how = request;
    how.replay = nullptr;
    how.attempt = attempt;
    Explored explored;
    explored.first = run_once(own, how);
    explored.undecided = explored.first.undecided;
    return explored;
  };
  Attempts job = run_attempts(scenario, run, [] { return std::make_shared<MemoryCheckpoints>(); });
  if (job.attempt.number != number) {
    return nullptr;
  }
  request.attempt = std::move(job.attempt);
  request.attempt.store = std::make_shared<MemoryCheckpoints>();
  return std::move(job.scenario);
}

}  // namespace

Comparison compare(const Scenario& scenario, const OneRun& real,
                   const std::vector<Finding>& real_findings, bool skip_values,
                   const Deadline* deadline) {
  Comparison comparison;
  if (!real.ran) {
    comparison.not_compared = "there was no real run";
    return comparison;
  }
  RunRequest request;
  request.lists = true;
  request.deadline = deadline;
  request.replay = real.result.journal.get();
  request.repeats_processes = true;
  request.arithmetic = skip_values ? Arithmetic::never : Arithmetic::always;
  std::shared_ptr<const Scenario> attempted;
  if (real.attempt.store) {
    attempted = simulate_attempts(scenario, real.attempt.number, request);
    if (!attempted) {
      comparison.not_compared =
          fmt::format("the simulation makes no attempt {}", real.attempt.number);
      return comparison;
    }
  }
  const OneRun simulated = run_once(attempted ? *attempted : scenario, request);
  if (!simulated.ran || !simulated.undecided.empty()) {
    comparison.not_compared = simulated.undecided.empty() && !simulated.problems.empty()
                                  ? simulated.problems.front().message
                                  : simulated.undecided;
    return comparison;
  }
  comparison.tensors = held_tensors(real);
  comparison.points = {
      outcome(real, attempted ? findings_of(real, real.world) : real_findings, simulated),
      calls(real, simulated),
      skip_values ? Point{"values", true, "", {}, "--skip-values"} : values(real, simulated),
      memory(real, simulated, comparison.tensors)};
  if (!real.result.hung && !simulated.result.hung) {
    comparison.real_step = measure(real).prediction.step_time;
    Prediction prediction = measure(simulated).prediction;
    if (simulated.calibration) {
      add_range(scenario, request, prediction);
      comparison.calibration = simulated.calibration->file;
    }
    comparison.predicted_step = prediction.step_time;
    comparison.predicted_low = prediction.step_time_low;
    comparison.predicted_high = prediction.step_time_high;
  }
  comparison.predicted_for = simulated.machine.name;
  return comparison;
}

}  // namespace lockstep::cli
