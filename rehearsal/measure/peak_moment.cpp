#include "rehearsal/measure/peak_moment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "model/strategy/local_model/replica_sites.hpp"
#include "model/strategy/local_model/tensor_sites.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_sites.hpp"
#include "model/strategy/sharded/fairscale/fairscale_sites.hpp"
#include "model/strategy/sharded/fairscale/fully_sharded_sites.hpp"
#include "model/strategy/sharded/fsdp/fsdp2_sites.hpp"
#include "model/strategy/sharded/fsdp/fsdp_sites.hpp"
#include "model/strategy/sharded/zero_redundancy_sites.hpp"
#include "rehearsal/measure/batch_loops.hpp"

namespace lockstep::cli {

namespace {

using Phase = PeakMoment::Phase;

// Known when this is compiled: it is asked for every row of a journal.
template <size_t count>
constexpr std::array<SiteId, count> sites_named(const std::array<std::string_view, count>& names) {
  std::array<SiteId, count> sites{};
  std::ranges::transform(names, sites.begin(), [](auto name) { return site_id(name); });
  return sites;
}

bool is_one_of(SiteId site, std::span<const SiteId> sites) {
  return std::ranges::find(sites, site) != sites.end();
}

bool is_of_checkpoint(SiteId site) {
  static constexpr auto sites = sites_named(std::to_array<std::string_view>({
      fsdp_sites::gather_state,
      fsdp_sites::gather_optimizer,
      fsdp_sites::exchange_plans,
      fsdp2_sites::gather_state,
      fsdp2_sites::exchange_plans,
      fully_sharded_sites::gather_state,
      fairscale_sites::send_optimizer,
      zero_redundancy_sites::send_optimizer,
      deepspeed_sites::gather_state,
      tensor_sites::gather_state,
  }));
  return is_one_of(site, sites);
}

bool is_of_backward(SiteId site) {
  static constexpr auto sites = sites_named(std::to_array<std::string_view>(
      {replica_sites::recompute, replica_sites::layer_backward, replica_sites::loss_backward}));
  return is_one_of(site, sites);
}

bool is_of_forward(SiteId site) {
  static constexpr auto sites = sites_named(
      std::to_array<std::string_view>({replica_sites::layer_forward, replica_sites::loss_forward}));
  return is_one_of(site, sites);
}

/// What a row says by itself. Marks of steps and batches say what is over and what begins.
enum class Sign : uint8_t { none, batch, forward, backward, update, step, checkpoint };

Sign sign_of(const Row& row) {
  if (row.row == RowKind::choice) {
    const bool is_step = row.tag == static_cast<int32_t>(ChoiceKind::step);
    return is_step ? Sign::step : Sign::none;
  }
  if (row.row != RowKind::op || row.kind == OpKind::event) {
    return Sign::none;
  }
  if (row.site == data_loading_site || row.site == site_id(replica_sites::bring_batch)) {
    return Sign::batch;
  }
  if (is_of_checkpoint(row.site)) {
    return Sign::checkpoint;
  }
  if (is_optimizer(row)) {
    return Sign::update;
  }
  if (is_of_backward(row.site)) {
    return Sign::backward;
  }
  return is_of_forward(row.site) ? Sign::forward : Sign::none;
}

/// What the rank does around an allocation.
struct Surroundings {
  Sign before = Sign::none;  ///< the last sign before it
  Sign behind = Sign::none;  ///< the first behind it
  bool is_direct = true;     ///< that operation is the first behind it
  bool has_batch = false;    ///< some batch began before it
  bool reduces = false;      ///< a reduction lies between it and the first sign behind it
};

// A collective, a copy or a cast does not say whose it is. What began before it goes on until a
// sign of something else, and gradients that are still exchanged belong to their backward.
Phase phase_of(const Surroundings& around) {
  const auto begun_by = [](Sign sign) {
    switch (sign) {
      case Sign::backward: return Phase::backward;
      case Sign::update:
      case Sign::step: return Phase::optimizer_step;
      case Sign::checkpoint: return Phase::checkpoint;
      default: return Phase::forward;
    }
  };
  const Sign before = around.before;
  const Sign behind = around.behind;
  if (around.is_direct && behind != Sign::none && behind != Sign::step) {
    return begun_by(behind);
  }
  if (before == Sign::update) {
    return Phase::optimizer_step;
  }
  if (before == Sign::none && !around.has_batch) {
    return Phase::set_up;
  }
  const bool begins_forward = behind == Sign::forward || behind == Sign::batch;
  if (before == Sign::backward) {
    return begins_forward && !around.reduces ? Phase::forward : Phase::backward;
  }
  return behind == Sign::none ? begun_by(before) : begun_by(behind);
}

/// Reads on behind an allocation of a forward: an evaluation has no backward before its next batch.
class BackwardSearch {
 public:
  /// False: no further row is needed.
  bool add(Sign sign) {
    has_forward_ = has_forward_ || sign == Sign::forward;
    has_backward_ =
        has_backward_ || sign == Sign::backward || sign == Sign::update || sign == Sign::step;
    const bool is_over = sign == Sign::checkpoint || (sign == Sign::batch && has_forward_);
    return !has_backward_ && !is_over;
  }
  bool has_backward() const { return has_backward_; }

 private:
  bool has_forward_ = false;
  bool has_backward_ = false;
};

/// Reads the rows of a lane until they say what an allocation is for.
class PeakReader {
 public:
  PeakReader(const Sites& sites, BufferId peak) : loops_(sites), peak_(peak) {}

  /// False: no further row is needed.
  bool add(const Row& row) {
    const Sign sign = sign_of(row);
    if (found_) {
      return add_behind(row, sign);
    }
    found_ = row.row == RowKind::allocate && row.tag == static_cast<int32_t>(peak_.value);
    if (!found_) {
      loops_.add(row);
      around_.before = sign == Sign::none ? around_.before : sign;
      around_.has_batch = around_.has_batch || sign == Sign::batch;
      ++rows_before_;
    }
    return true;
  }

  bool found() const { return found_; }
  int64_t rows_before() const { return rows_before_; }
  Phase phase() const {
    const Phase phase = phase_of(around_);
    const bool evaluates = loops_.are_marked() ? loops_.evaluates() : !search_.has_backward();
    return phase == Phase::forward && evaluates ? Phase::evaluation : phase;
  }
  /// It follows the update of a step whose end the trainer has not marked yet.
  bool ends_step() const { return around_.before == Sign::update && !around_.is_direct; }

 private:
  bool add_behind(const Row& row, Sign sign) {
    if (around_.behind == Sign::none) {
      around_.behind = sign;
      if (sign == Sign::none && row.row == RowKind::op && row.kind != OpKind::event) {
        around_.is_direct = false;
        around_.reduces = around_.reduces || row.kind == OpKind::reduce_scatter ||
                          row.kind == OpKind::all_reduce || row.kind == OpKind::reduce;
      }
    }
    const bool searches = search_.add(sign) && !loops_.are_marked();
    const bool is_clear =
        around_.behind != Sign::none && (phase_of(around_) != Phase::forward || !searches);
    return !is_clear && row.row != RowKind::raise;
  }

  BatchLoops loops_;
  BackwardSearch search_;
  BufferId peak_;
  Surroundings around_;
  bool found_ = false;
  int64_t rows_before_ = 0;
};

// With those that a simulation has left out.
int64_t steps_before(std::span<const RepeatedRows> repeated, const std::vector<StepMark>& steps,
                     int64_t row) {
  const auto ended_in = [&steps](int64_t begin, int64_t end) {
    return std::ranges::count_if(steps, [begin, end](const StepMark& step) {
      return begin < step.rows.end && step.rows.end <= end;
    });
  };
  int64_t count = ended_in(0, row);
  const std::vector<int64_t> times = times_repeated(
      repeated, [&](const RepeatedRows& rows) { return ended_in(rows.begin, rows.end); });
  for (size_t entry = 0; entry < repeated.size() && repeated[entry].row <= row; ++entry) {
    count += times[entry];
  }
  return count;
}

}  // namespace

std::optional<PeakMoment> moment_of(const Journal& journal, int32_t rank, BufferId peak,
                                    const std::vector<StepMark>& steps) {
  if (peak == no_buffer) {
    return std::nullopt;
  }
  PeakReader reader(journal.sites, peak);
  const LaneJournal& lane = journal.lane(rank, 0);
  RowCursor rows(lane);
  for (int64_t row = 0; row < lane.size() && reader.add(rows.next()); ++row) {
  }
  if (!reader.found()) {
    return std::nullopt;
  }
  const std::span<const RepeatedRows> repeated = journal.repeated.empty()
                                                     ? std::span<const RepeatedRows>()
                                                     : journal.repeated[static_cast<size_t>(rank)];
  PeakMoment moment;
  moment.phase = reader.phase();
  moment.steps_before = steps_before(repeated, steps, reader.rows_before());
  if (moment.phase == Phase::optimizer_step && reader.ends_step() && moment.steps_before > 0) {
    --moment.steps_before;
  }
  return moment;
}

std::string_view name_of(PeakMoment::Phase phase) {
  switch (phase) {
    case Phase::set_up: return "set_up";
    case Phase::forward: return "forward";
    case Phase::backward: return "backward";
    case Phase::optimizer_step: return "optimizer_step";
    case Phase::evaluation: return "evaluation";
    case Phase::checkpoint: return "checkpoint";
  }
  return "";
}

std::string text_of(const PeakMoment& moment) {
  const int64_t step = moment.steps_before + 1;
  const std::string after = moment.steps_before == 0
                                ? "before the first step"
                                : fmt::format("after step {}", moment.steps_before);
  switch (moment.phase) {
    case Phase::set_up: return "while the model is set up";
    case Phase::forward: return fmt::format("in the forward of step {}", step);
    case Phase::backward: return fmt::format("in the backward of step {}", step);
    case Phase::optimizer_step: return fmt::format("in optimizer.step() of step {}", step);
    case Phase::evaluation: return "in an evaluation " + after;
    case Phase::checkpoint: return "while the state_dict is gathered " + after;
  }
  return "";
}

}  // namespace lockstep::cli
