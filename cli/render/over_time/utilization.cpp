#include "cli/render/over_time/utilization.hpp"

#include <algorithm>
#include <compare>
#include <set>

namespace lockstep::cli {

namespace {

/// Ranks that are looked at beside one, for who waits for whom.
constexpr size_t told_ranks_max = 7;
/// So many rows of their journals are read, and nothing is shown of a rank that has more: it would
/// take longer than the prediction.
constexpr int64_t simulated_rows_max = 4'000'000;
/// Less than this part of a steady step is a dip.
constexpr double dip_below = 0.9;

bool has_gpus_over_time(const OneRun& run) {
  return !run.preparation.scenario->is_bare_program() && !run.preparation.placement.cpu &&
         run.result.total_time > Time{};
}

int64_t rows_of(const Journal& journal, int32_t rank) {
  int64_t rows = 0;
  for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
    rows += journal.lane(rank, lane).size();
  }
  return rows;
}

// What tells ranks apart at first sight: those that others stand for look as these do.
struct Look {
  int64_t rows = 0;
  Time issue{};
  Time start{};
  Time finish{};
  auto operator<=>(const Look&) const = default;
};

Look look_of(const Journal& journal, int32_t rank) {
  Look look{rows_of(journal, rank)};
  const LaneJournal& lane = journal.lane(rank, 0);
  if (lane.size() > 0) {
    const Completion last = lane.completion(lane.row(lane.size() - 1).sequence);
    look.issue = last.issue;
    look.start = last.start;
    look.finish = last.finish;
  }
  return look;
}

// The first of each look, and then the first of all: so that the same ranks are looked at, whether
// others stand for some of them or not.
std::vector<int32_t> in_order_of_interest(const Journal& journal, int32_t rank) {
  std::vector<int32_t> ranks;
  std::set<Look> looks{look_of(journal, rank)};
  for (const int32_t other : journal.own_ranks()) {
    if (ranks.size() < told_ranks_max && looks.insert(look_of(journal, other)).second) {
      ranks.push_back(other);
    }
  }
  for (int32_t other = 0; other < journal.ranks() && ranks.size() < told_ranks_max; ++other) {
    if (other != rank && std::ranges::find(ranks, other) == ranks.end()) {
      ranks.push_back(other);
    }
  }
  return ranks;
}

// As many as there is time for.
std::vector<int32_t> ranks_beside(const Journal& journal, int32_t rank) {
  std::vector<int32_t> others;
  int64_t rows = rows_of(journal, rank);
  for (const int32_t other : in_order_of_interest(journal, rank)) {
    rows += rows_of(journal, other);
    if (rows > simulated_rows_max) {
      break;
    }
    const int32_t own = journal.own_rank(other);
    if (own != journal.own_rank(rank) && std::ranges::find(others, own) == others.end()) {
      others.push_back(own);
    }
  }
  return others;
}

double share(Time part, Time whole) { return whole > Time{} ? seconds(part) / seconds(whole) : 0; }

UtilizationSample sample_of(const MomentTimes& times, Time until, Time length, bool nccl) {
  UtilizationSample sample;
  sample.until = until;
  for (size_t kind = 0; kind < moment_count; ++kind) {
    sample.share[kind] = share(times.of[kind], length);
  }
  sample.evaluating = share(times.evaluating, length);
  sample.working = sample.share[static_cast<size_t>(Moment::working)];
  sample.kernel_ran =
      sample.working + (nccl ? sample.share[static_cast<size_t>(Moment::other_ranks)] : 0);
  return sample;
}

Moment cause_of(const UtilizationSample& sample) {
  return static_cast<Moment>(std::max_element(sample.share.begin() + 1, sample.share.end()) -
                             sample.share.begin());
}

void add_dips(Utilization& utilization) {
  Time begin{};
  for (const UtilizationSample& sample : utilization.samples) {
    if (sample.working < dip_below * utilization.usual) {
      const bool evaluates = sample.evaluating > 0.5 * (1 - sample.working);
      UtilizationDip dip{begin, sample.until, sample.working, cause_of(sample), evaluates};
      UtilizationDip* last = utilization.dips.empty() ? nullptr : &utilization.dips.back();
      if (last != nullptr && last->end == begin && last->cause == dip.cause &&
          last->evaluates == dip.evaluates) {
        const double before = seconds(last->end - last->begin);
        const double more = seconds(dip.end - dip.begin);
        last->working = (last->working * before + dip.working * more) / (before + more);
        last->end = dip.end;
      } else {
        utilization.dips.push_back(dip);
      }
    }
    begin = sample.until;
  }
}

}  // namespace

bool is_of_one_run(const Rehearsal& rehearsal) {
  const std::optional<ElasticResults>& elastic = rehearsal.results.elastic;
  const bool starts_again = elastic && elastic->attempts.size() > 1;
  return rehearsal.ran() && !is_real(rehearsal.world) && rehearsal.why_no_prediction().empty() &&
         !starts_again && rehearsal.run.result.journal != nullptr &&
         rehearsal.run.result.total_time == rehearsal.results.prediction.total_time;
}

std::string UtilizationDip::label() const {
  const std::string cause_text(phrase_of(cause));
  return evaluates ? "validation, " + cause_text : cause_text;
}

Time round_period(Time least) {
  int64_t unit = 1;
  for (;; unit *= 10) {
    for (const int64_t digit : {1, 2, 5}) {
      if (Time(unit) * digit >= least) {
        return Time(unit) * digit;
      }
    }
  }
}

std::optional<Utilization> utilization_of(const Rehearsal& rehearsal, int32_t rank,
                                          int64_t samples_max) {
  return is_of_one_run(rehearsal)
             ? utilization_of(rehearsal.run, rehearsal.results.prediction, rank, samples_max)
             : std::nullopt;
}

std::optional<Utilization> utilization_of(const OneRun& one, const Prediction& prediction,
                                          int32_t rank, int64_t samples_max) {
  const RunResult& run = one.result;
  if (!has_gpus_over_time(one) || rows_of(*run.journal, rank) > simulated_rows_max) {
    return std::nullopt;
  }
  const Moments moments(run, rank, ranks_beside(*run.journal, rank));
  const Time total = run.total_time;
  Utilization utilization;
  utilization.rank = rank;
  utilization.period =
      round_period(std::max({Time(1), total / samples_max, prediction.step_time.value_or(Time{})}));
  const bool nccl = !one.preparation.gloo;
  for (Time begin{}; begin < total; begin += utilization.period) {
    const Time end = std::min(total, begin + utilization.period);
    utilization.samples.push_back(sample_of(moments.between(begin, end), end, end - begin, nccl));
  }
  const UtilizationSample whole = sample_of(moments.between({}, total), total, total, nccl);
  utilization.kernel_ran = whole.kernel_ran;
  utilization.working = whole.working;
  const Breakdown& step = prediction.breakdown;
  utilization.usual = prediction.step_time ? share(step.busy, step.whole()) : whole.working;
  add_dips(utilization);
  return utilization;
}

}  // namespace lockstep::cli
