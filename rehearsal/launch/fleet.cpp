#include "rehearsal/launch/fleet.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>

#include "rehearsal/launch/interruption.hpp"
#include "rehearsal/launch/reports.hpp"
#include "rehearsal/launch/serving_rank.hpp"
#include "rehearsal/launch/temporary_folder.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;
using Clock = ChildProcesses::Clock;

constexpr std::chrono::seconds start_limit{120};    // loading LibTorch on a busy machine
constexpr std::chrono::seconds case_limit{120};     // until the first rank has come to its end
constexpr std::chrono::seconds report_limit{60};    // from the agreement to the last report
constexpr std::chrono::seconds beyond_deadline{2};  // beyond a rank's own deadline
constexpr std::chrono::milliseconds look_every{20};

/// What has come from one rank about its case.
struct Answer {
  bool connected = false;       ///< to all others; it waits to be started
  std::optional<Frame> ended;   ///< its program is at its end; it waits for the agreement
  std::optional<Frame> report;  ///< or why there is none
  bool answered() const { return ended || report; }
};

}  // namespace

class RankFleet::Members {
 public:
  explicit Members(std::string program) : program_(std::move(program)) {}

  RealRun run(const FleetCase& asked, const Preparation& preparation);

  std::vector<pid_t> processes() const {
    const std::lock_guard lock(mutex_);
    return processes_;
  }
  int64_t connections() const { return static_cast<int64_t>(connection_); }
  int64_t starts() const { return starts_; }
  const std::string& folder() const { return folder_.path(); }

 private:
  void start_missing(size_t ranks);
  void wait_until_ready(size_t ranks);
  void ask(const FleetCase& asked, size_t ranks);
  void start_connected();
  void wait_for_ends(const FleetCase& asked);
  void agree();
  RealRun gather(const Preparation& preparation);
  void clear_up();
  /// Takes what comes until `done`, or until the time has come: false.
  bool hear_until(Clock::time_point time, const std::function<bool()>& done);
  bool all(const std::function<bool(const Answer&)>& is) const;
  bool any_gone() const;

  std::string program_;
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<ServingRank>> members_;
  std::vector<bool> ready_;
  std::vector<Answer> answers_;      ///< of the ranks that take part in this case
  std::vector<uint64_t> connected_;  ///< by world size: the number of the connection; 0: none
  uint64_t connection_ = 0;
  uint64_t runs_ = 0;
  int64_t starts_ = 0;
  mutable std::mutex mutex_;
  std::vector<pid_t> processes_;
};

void RankFleet::Members::start_missing(size_t ranks) {
  members_.resize(std::max(members_.size(), ranks));
  ready_.resize(members_.size());
  const std::lock_guard lock(mutex_);
  processes_.resize(members_.size());
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (members_[rank] == nullptr) {
      members_[rank] = std::make_unique<ServingRank>(program_, static_cast<int32_t>(rank));
      ready_[rank] = false;
      processes_[rank] = members_[rank]->process();
      ++starts_;
    }
  }
}

bool RankFleet::Members::hear_until(Clock::time_point time, const std::function<bool()>& done) {
  Interruption interruption;
  while (!done()) {
    if (interruption.arrived()) {
      throw Interrupted("interrupted: the rank programs were ended");
    }
    if (Clock::now() >= time) {
      return false;
    }
    std::vector<pollfd> open;
    std::vector<size_t> owners;
    for (size_t rank = 0; rank < members_.size(); ++rank) {
      if (members_[rank] != nullptr && !members_[rank]->gone()) {
        open.push_back({members_[rank]->socket(), POLLIN, 0});
        owners.push_back(rank);
        members_[rank]->look();
      }
    }
    poll(open.data(), open.size(), static_cast<int>(look_every.count()));
    for (size_t index = 0; index < open.size(); ++index) {
      const size_t rank = owners[index];
      if (open[index].revents == 0) {
        continue;
      }
      members_[rank]->listen([&](const Frame& frame) {
        if (frame.contains("ready")) {
          ready_[rank] = true;
        } else if (rank < answers_.size() && frame.contains("connected")) {
          answers_[rank].connected = true;
        } else if (rank < answers_.size() && frame.contains("ended")) {
          answers_[rank].ended = frame;
        } else if (rank < answers_.size()) {
          answers_[rank].report = frame;
        }
      });
    }
  }
  return true;
}

bool RankFleet::Members::any_gone() const {
  for (size_t rank = 0; rank < answers_.size(); ++rank) {
    if (members_[rank]->gone()) {
      return true;
    }
  }
  return false;
}

// Whether this is so for every rank that is still there.
bool RankFleet::Members::all(const std::function<bool(const Answer&)>& is) const {
  for (size_t rank = 0; rank < answers_.size(); ++rank) {
    if (!members_[rank]->gone() && !is(answers_[rank])) {
      return false;
    }
  }
  return true;
}

void RankFleet::Members::wait_until_ready(size_t ranks) {
  const auto ready = [&] {
    for (size_t rank = 0; rank < ranks; ++rank) {
      if (!ready_[rank] && !members_[rank]->gone()) {
        return false;
      }
    }
    return true;
  };
  hear_until(Clock::now() + start_limit, ready);
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (!ready_[rank]) {
      members_[rank]->end();
      const std::string how = members_[rank]->how_it_ended();
      members_[rank].reset();
      throw RealRunFailed(fmt::format("rank {} did not start: {}", rank, how));
    }
  }
}

void RankFleet::Members::ask(const FleetCase& asked, size_t ranks) {
  connected_.resize(std::max(connected_.size(), ranks + 1));
  if (connected_[ranks] == 0) {
    connected_[ranks] = ++connection_;
  }
  ++runs_;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const auto number = static_cast<int32_t>(rank);
    Frame frame = {{"path", asked.path},
                   {"case", asked.scenario_case},
                   {"set", asked.set},
                   {"rank", number},
                   {"world_size", ranks},
                   {"hang_after_ms", asked.hang_after.count()},
                   {"lists", asked.lists},
                   {"run", runs_},
                   {"meeting", fmt::format("{}/{}", folder_.path(), connected_[ranks])},
                   {"connection", connected_[ranks]},
                   {"journal", fmt::format("{}/{}", folder_.path(), journal_name(number))}};
    if (!asked.text.empty()) {
      frame["text"] = asked.text;
    }
    members_[rank]->say(frame);
  }
}

void RankFleet::Members::start_connected() {
  hear_until(Clock::now() + case_limit, [this] {
    return all([](const Answer& answer) { return answer.connected || answer.answered(); });
  });
  for (size_t rank = 0; rank < answers_.size(); ++rank) {
    if (answers_[rank].connected && !members_[rank]->gone()) {
      members_[rank]->say({{"start", true}});
    }
  }
}

// Ranks have deadlines of their own; these are for those that do not keep them.
void RankFleet::Members::wait_for_ends(const FleetCase& asked) {
  const auto any = [this] {
    return any_gone() || std::any_of(answers_.begin(), answers_.end(),
                                     [](const Answer& answer) { return answer.answered(); });
  };
  const auto every = [this] { return all([](const Answer& answer) { return answer.answered(); }); };
  hear_until(Clock::now() + case_limit, any);
  hear_until(Clock::now() + asked.hang_after + beyond_deadline, every);
  for (size_t rank = 0; rank < answers_.size(); ++rank) {
    if (!answers_[rank].answered()) {
      members_[rank]->end();
    }
  }
}

void RankFleet::Members::agree() {
  bool keep = !any_gone();
  int64_t eager = 0;
  for (const Answer& answer : answers_) {
    keep = keep && answer.ended && answer.ended->at("usable").get<bool>();
    eager += answer.ended ? answer.ended->at("eager").get<int64_t>() : 0;
  }
  keep = keep && eager == 0;
  const size_t ranks = answers_.size();
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (answers_[rank].ended && !members_[rank]->gone()) {
      const auto& before = answers_[(rank + ranks - 1) % ranks].ended;
      members_[rank]->say(
          {{"keep", keep}, {"dismiss", keep && before && before->at("listens").get<bool>()}});
    }
  }
  hear_until(Clock::now() + report_limit, [this] {
    return all([](const Answer& answer) { return answer.report.has_value(); });
  });
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (!answers_[rank].report) {
      members_[rank]->end();
    }
    keep = keep && answers_[rank].report && answers_[rank].report->value("kept", false);
  }
  if (!keep) {
    connected_[ranks] = 0;
  }
}

RealRun RankFleet::Members::gather(const Preparation& preparation) {
  for (size_t rank = 0; rank < answers_.size(); ++rank) {
    const auto& report = answers_[rank].report;
    if (report && report->contains("failed")) {
      throw RealRunFailed(
          fmt::format("rank {}: {}", rank, report->at("failed").get<std::string>()));
    }
  }
  const ReportOf report_of = [this](int32_t rank) -> std::optional<std::vector<uint8_t>> {
    const auto& report = answers_[static_cast<size_t>(rank)].report;
    return report ? std::optional<std::vector<uint8_t>>(report->at("report").get_binary())
                  : std::nullopt;
  };
  return put_together(report_of, folder_.path(), preparation, [this](int32_t rank) {
    const ServingRank& member = *members_[static_cast<size_t>(rank)];
    return RankEnd{RankEnd::Kind::lost, no_site, member.how_it_ended(), false};
  });
}

// Who died is started again at once, so that it loads while others work.
void RankFleet::Members::clear_up() {
  bool died = false;
  for (size_t rank = 0; rank < answers_.size(); ++rank) {
    std::error_code ignored;
    const fs::path journal = fs::path(folder_.path()) / journal_name(static_cast<int32_t>(rank));
    fs::remove(journal, ignored);
    fs::remove(journal.string() + ".new", ignored);  // of a rank that died while it made one
    if (members_[rank]->gone()) {
      members_[rank].reset();
      died = true;
    }
  }
  if (died) {
    std::fill(connected_.begin(), connected_.end(), 0);
    start_missing(members_.size());
  }
  answers_.clear();
}

RealRun RankFleet::Members::run(const FleetCase& asked, const Preparation& preparation) {
  const auto ranks = static_cast<size_t>(preparation.options.world_size);
  start_missing(ranks);
  wait_until_ready(ranks);
  answers_.assign(ranks, {});
  ask(asked, ranks);
  start_connected();
  wait_for_ends(asked);
  agree();
  try {
    RealRun real = gather(preparation);
    clear_up();
    return real;
  } catch (...) {
    clear_up();
    throw;
  }
}

RankFleet::RankFleet(std::string program)
    : members_(std::make_unique<Members>(std::move(program))) {}
RankFleet::~RankFleet() = default;

RealRun RankFleet::run(const FleetCase& asked, const Preparation& preparation) {
  return members_->run(asked, preparation);
}
std::vector<pid_t> RankFleet::processes() const { return members_->processes(); }
int64_t RankFleet::connections() const { return members_->connections(); }
int64_t RankFleet::starts() const { return members_->starts(); }
const std::string& RankFleet::folder() const { return members_->folder(); }

}  // namespace lockstep::cli
