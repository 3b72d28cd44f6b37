#include "rehearsal/explore/explore.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "properties/diagnosis/shrink.hpp"
#include "rehearsal/elastic/kept_checkpoints.hpp"
#include "rehearsal/explore/drawn_orders.hpp"
#include "rehearsal/explore/explorer_port.hpp"
#include "rehearsal/explore/unknown_choices.hpp"
#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/run/run_ahead.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

constexpr int32_t late_ranks_max = 16;
// Once an error is found, this many further schedules look for others.
constexpr int64_t schedules_after_error = 64;
constexpr size_t choices_tried_in_turn = 6;  // 2^6 schedules
// Two longer runs at once would take much memory.
constexpr int64_t operations_ahead_max = 2'000'000;

using Key = std::tuple<std::vector<uint32_t>, uint32_t, std::vector<uint32_t>, bool>;

class Explorer {
 public:
  Explorer(const Scenario& scenario, const ExploreRequest& request)
      : scenario_(scenario), request_(request) {}

  Explored run() {
    add({});
    while (!queue_.empty() && !stopped()) {
      if (request_.deadline != nullptr && request_.deadline->passed()) {
        explored_.undecided = request_.deadline->reason();
        break;
      }
      const Schedule schedule = std::move(queue_.front());
      queue_.pop_front();
      visit(schedule);
    }
    explored_.complete = queue_.empty() && explored_.undecided.empty();
    const bool limited = !queue_.empty() && request_.schedules_max > 1;
    if (limited && explored_.undecided.empty() && first_error_ == 0) {
      explored_.undecided =
          fmt::format("verify.max_schedules: {} schedules were not enough", request_.schedules_max);
    }
    for (auto& [site, finding] : apart_) {
      const bool known = std::ranges::any_of(
          explored_.findings, [&](const Finding& other) { return same_defect(finding, other); });
      if (!known) {
        explored_.findings.push_back(std::move(finding));
      }
    }
    sort_findings(explored_.findings);
    tell_ways();
    return std::move(explored_);
  }

 private:
  bool stopped() const {
    return begun_ >= request_.schedules_max || !explored_.undecided.empty() ||
           (first_error_ != 0 && explored_.schedules >= first_error_ + schedules_after_error);
  }

  void add(Schedule schedule) {
    if (seen_
            .insert({schedule.free_choices, schedule.other_choices, schedule.sources,
                     schedule.sources_last})
            .second) {
      queue_.push_back(std::move(schedule));
    }
  }

  void visit(const Schedule& schedule) {
    if (explored_.schedules > 0) {
      tell_order();
    }
    note_phase(request_.deadline, "");
    RunRequest request = request_of(schedule);
    OneRun run =
        ahead_ && ahead_->schedule == schedule ? ahead_->run.get() : run_once(scenario_, request);
    ahead_.reset();
    ++begun_;
    const bool hangs = run.ran && run.result.hung && run.undecided.empty();
    if (hangs && !request.lists && !is_real(request.world)) {
      request.lists = true;  // who waits for whom stands there
      request.attempt.store =
          request.attempt.store ? std::make_shared<MemoryCheckpoints>() : nullptr;
      run = run_once(scenario_, request);
    }
    if (!run.source_alternatives.empty() && run.source_alternatives.back() == 0) {
      add_flips(run, schedule);
      return;
    }
    ++explored_.schedules;
    if (!run.ran) {
      explored_.undecided = run.undecided;
      if (explored_.schedules == 1) {
        explored_.first = std::move(run);
      }
      return;
    }
    explored_.undecided = run.undecided;
    if (explored_.schedules == 1) {
      branch_out(run);
    }
    add_flips(run, schedule);
    if (run.undecided.empty()) {
      begin_next(run);
      collect(run, schedule);
    }
    explored_.sites.merge(run.result.journal->sites);
    if (explored_.schedules == 1) {
      explored_.first = std::move(run);
    }
  }

  // Of those that are known: a run may show further ones.
  void tell_order() const {
    const int64_t known = explored_.schedules + 1 + std::ssize(queue_);
    const int64_t total = std::min(known, request_.schedules_max);
    tell(request_.progress, fmt::format("order {} of {} so far", explored_.schedules + 1, total),
         Amount{explored_.schedules, total});
  }

  RunRequest request_of(const Schedule& schedule) const {
    RunRequest request{request_.world, request_.lists, schedule, request_.deadline};
    request.hang_after = request_.hang_after;
    request.join_timeout = request_.join_timeout;
    request.ranks_max = request_.ranks_max;
    request.real = request_.real;
    request.device = request_.device;
    request.progress = request_.progress;
    request.journal_bytes_max = request_.journal_bytes_max;
    request.arithmetic = request_.arithmetic;
    request.attempt = request_.attempt;
    request.keeps_steps = request_.keeps_steps;
    if (begun_ > 0 && request.attempt.store) {
      request.attempt.store = std::make_shared<MemoryCheckpoints>();
    }
    return request;
  }

  // The schedule that is next in the queue, on a thread of its own.
  void begin_next(const OneRun& run) {
    const bool may = request_.threads > 1 && request_.world == World::simulated &&
                     !request_.attempt.store && run.result.operations <= operations_ahead_max;
    if (!may || queue_.empty() || stopped()) {
      return;
    }
    const Schedule& next = queue_.front();
    RunRequest request = request_of(next);
    request.progress = nullptr;  // its own would come between those of this thread
    ahead_.emplace(next, run_ahead([this, request] { return run_once(scenario_, request); }));
  }

  void collect(const OneRun& run, const Schedule& schedule) {
    note_phase(request_.deadline, text_of_search(run));
    explored_.hung = explored_.hung || run.result.hung;
    const SiteId apart = unknown_taken_apart(run);
    for (Finding& finding : findings_of(run, request_.world)) {
      const bool known =
          std::any_of(explored_.findings.begin(), explored_.findings.end(),
                      [&](const Finding& other) { return same_defect(finding, other); });
      if (known && explored_.schedules > 1) {
        continue;
      }
      const std::string how = way_of(run, schedule);
      finding.when += (finding.when.empty() || how.empty() ? "" : ", ") + how;
      if (finding.level == Level::error && first_error_ == 0) {
        first_error_ = explored_.schedules;
      }
      if (apart == no_site) {
        explored_.findings.push_back(std::move(finding));
      } else {
        keep_one(apart, std::move(finding));
      }
    }
  }

  // What comes of an `unknown` that ranks take apart is one defect, however many pairs of calls it
  // shows in. It is a finding of its own where some schedule shows that.
  void keep_one(SiteId apart, Finding finding) {
    const auto [known, fresh] = apart_.try_emplace(apart, std::move(finding));
    const auto weight = [](const Finding& told) {
      return std::pair(told.code == "LS109", told.level == Level::error);
    };
    if (!fresh && weight(finding) > weight(known->second)) {
      known->second = std::move(finding);
    }
  }

  std::string text_of_search(const OneRun& run) const {
    const int64_t steps = run.preparation.log->ranks.front().steps;
    const std::string order =
        explored_.schedules > 1 ? fmt::format("order {} of ", explored_.schedules) : "";
    return fmt::format("findings of {}{}{} were looked for", order,
                       steps > 0 ? plural(steps, "step") + " on " : "",
                       plural(run.preparation.options.world_size, "rank"));
  }

  static std::string way_of(const OneRun& run, const Schedule& schedule) {
    std::string text = rank_choices(run, run.result.journal->sites);
    if (schedule.late_rank >= 0) {
      text = fmt::format("if rank {} is late", schedule.late_rank);
    } else if (schedule.tie_seed) {
      text = fmt::format("in the order drawn from seed {}", *schedule.tie_seed);
    } else if (!schedule.sources.empty() || schedule.sources_last) {
      text += (text.empty() ? "" : ", ") +
              std::string("if receives from any source take other senders first");
    }
    return text;
  }

  // Schedules that do not follow from choices of a run.
  void branch_out(const OneRun& run) {
    if (request_.world != World::simulated) {
      return;
    }
    const Journal& journal = *run.result.journal;
    lanes_ = false;
    for (const int32_t rank : journal.own_ranks()) {
      lanes_ = lanes_ || journal.lanes(rank) > 1;
    }
    any_source_ = !run.source_alternatives.empty() || waits_for_any(journal);
    takes_first_ = !lanes_ && takes_whatever_comes_first(journal);
    unknowns_ = !unknown_sites(scenario_).empty();
    explored_.free = lanes_ || any_source_ || takes_first_ || unknowns_;
    // Fewer choices are all tried in turn, before the search ends behind the first error.
    if (unknowns_ && run.free_choices.size() > choices_tried_in_turn) {
      Schedule alike;
      alike.other_choices = 1;
      add(std::move(alike));
    }
    if (any_source_) {
      Schedule last;
      last.sources_last = true;
      add(std::move(last));
      const Time lateness = run.result.total_time * 2 + 1_ms;
      late_ranks_ = std::min(journal.ranks(), late_ranks_max);
      for (int32_t rank = 0; rank < late_ranks_; ++rank) {
        Schedule schedule;
        schedule.late_rank = rank;
        schedule.lateness = lateness;
        queue_.push_back(schedule);
      }
    }
    const bool is_large = !lanes_ && journal.ranks() > late_ranks_max;
    drawn_ = drawn_orders_of(run);
    drawn_.orders = is_large ? 1 : drawn_.orders;
    for (uint64_t seed = 1; (lanes_ || takes_first_) && seed <= drawn_.orders; ++seed) {
      Schedule schedule;
      schedule.tie_seed = seed;
      schedule.drawn_before = drawn_.before;
      queue_.push_back(schedule);
    }
  }

  static bool waits_for_any(const Journal& journal) {
    return journal.has_row([](const Row& row) {
      return row.row == RowKind::op && row.kind == OpKind::recv && row.peer == any_rank;
    });
  }

  // A server among several workers. Which one is first follows from times.
  static bool takes_whatever_comes_first(const Journal& journal) {
    return journal.has_row([](const Row& row) {
      return row.row == RowKind::choice && row.bytes > 1 &&
             static_cast<ChoiceKind>(row.tag) == ChoiceKind::settle_any;
    });
  }

  // One more deviation behind those that the schedule already holds.
  void add_flips(const OneRun& run, const Schedule& schedule) {
    // Where every candidate message of a receive has arrived, every way that it may go is among the
    // choices.
    const bool elsewhere = any_source_ && !schedule.sources_last;
    if (elsewhere || schedule.late_rank >= 0 || schedule.tie_seed || schedule.other_choices != 0 ||
        request_.schedules_max <= 1) {
      return;
    }
    for (size_t turn = schedule.free_choices.size(); turn < run.free_choices.size(); ++turn) {
      for (uint32_t way = 0; way < run.free_choices[turn].alternatives; ++way) {
        if (way != run.free_choices[turn].taken && room()) {
          Schedule flipped = schedule;
          for (size_t at = schedule.free_choices.size(); at < turn; ++at) {
            flipped.free_choices.push_back(run.free_choices[at].taken);
          }
          flipped.free_choices.push_back(way);
          add(std::move(flipped));
        }
      }
    }
    for (size_t turn = schedule.sources.size(); turn < run.source_alternatives.size(); ++turn) {
      for (uint32_t way = 1; way < run.source_alternatives[turn]; ++way) {
        if (room()) {
          Schedule flipped = schedule;
          flipped.sources.resize(turn, 0);
          flipped.sources.push_back(way);
          add(std::move(flipped));
        }
      }
    }
  }

  // The queue holds at most one schedule more than may be run.
  bool room() const {
    return begun_ + static_cast<int64_t>(queue_.size()) <= request_.schedules_max;
  }

  void tell_ways() {
    if (unknowns_) {
      explored_.ways.push_back(explored_.complete
                                   ? "both values of every `unknown` on each rank"
                                   : "both values of `unknown` on each rank, up to the limit");
    }
    if (any_source_) {
      explored_.ways.push_back(
          fmt::format("each order of messages to receives from any source, ranks 0-{} late in "
                      "turn",
                      late_ranks_ - 1));
      explored_.left_out.push_back("other delays of individual messages");
      explored_.left_out.push_back(
          "receives from any source that take a message of a later receive with a source");
    }
    if (lanes_) {
      explored_.ways.push_back(fmt::format(
          "{} of host threads{}", plural(drawn_.count(), "random interleaving"), drawn_.among()));
      explored_.left_out.push_back("other interleavings of host threads");
    }
    if (takes_first_) {
      explored_.ways.push_back(fmt::format("{} of messages that come at the same time{}",
                                           plural(drawn_.count(), "random order"), drawn_.among()));
      explored_.left_out.push_back("other orders in which messages come");
    }
    if (!explored_.complete && first_error_ != 0 && !queue_.empty()) {
      explored_.left_out.push_back("the schedules after the one that shows the error");
    }
  }

  struct Ahead {
    Schedule schedule;
    std::future<OneRun> run;
  };

  const Scenario& scenario_;
  const ExploreRequest& request_;
  Explored explored_;
  std::deque<Schedule> queue_;
  std::set<Key> seen_;
  std::map<SiteId, Finding> apart_;  ///< by the `unknown` that ranks took apart
  int64_t begun_ = 0;                ///< schedules, with those that came to the order of another
  int64_t first_error_ = 0;          ///< number of the schedule, from 1
  int32_t late_ranks_ = 0;
  bool lanes_ = false;
  bool any_source_ = false;
  bool takes_first_ = false;
  DrawnOrders drawn_;
  bool unknowns_ = false;
  std::optional<Ahead> ahead_;  ///< the run of the schedule that was next in the queue
};

}  // namespace

Explored explore(const Scenario& scenario, const ExploreRequest& request) {
  return Explorer(scenario, request).run();
}

}  // namespace lockstep::cli
