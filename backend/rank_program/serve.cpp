#include "backend/rank_program/serve.hpp"

#include <signal.h>

#include <memory>

#include "backend/gloo/world.hpp"
#include "backend/libtorch/kernels.hpp"
#include "backend/libtorch/tensor_memory.hpp"
#include "backend/process/connections.hpp"
#include "io/report/journal_file.hpp"
#include "rehearsal/case_source.hpp"
#include "rehearsal/launch/frames.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

namespace {

constexpr int launcher = 3;
constexpr std::chrono::seconds connect_limit{20};

/// One case as the launcher asks for it.
struct Case {
  CaseSource source;
  int32_t rank = 0;
  int32_t world_size = 1;
  std::chrono::milliseconds hang_after{};
  bool lists = false;
  uint64_t run = 0;
  backend::MeetingFolder meeting;
  std::string journal;  ///< where it goes as it grows; empty: nowhere
};

Case case_of(const Frame& frame) {
  Case asked;
  asked.source.path = frame.at("path");
  if (frame.contains("text")) {
    asked.source.reader = [text = frame.at("text").get<std::string>()](
                              const std::string&, size_t) -> std::variant<std::string, FileError> {
      return text;
    };
  }
  if (const std::string name = frame.at("case"); !name.empty()) {
    asked.source.scenario_case = name;
  }
  asked.source.set = frame.at("set");
  asked.rank = frame.at("rank");
  asked.world_size = frame.at("world_size");
  asked.hang_after = std::chrono::milliseconds(frame.at("hang_after_ms").get<int64_t>());
  asked.lists = frame.at("lists");
  asked.run = frame.at("run");
  asked.meeting = {frame.at("meeting"), frame.at("connection")};
  asked.journal = frame.at("journal");
  return asked;
}

class Server {
 public:
  Server(const RankOrigin& origin, backend::TensorMemory& tensors)
      : origin_(origin), tensors_(tensors) {}

  void run() {
    send_frame(launcher, {{"ready", true}});
    while (const auto frame = receive_frame(launcher, reader_)) {
      try {
        answer(case_of(*frame));
      } catch (const FrameError&) {
        throw;
      } catch (const std::exception& error) {
        send_frame(launcher, {{"failed", error.what()}});
      }
    }
  }

 private:
  void answer(const Case& asked) {
    LoadedScenarios loaded = asked.source.load();
    if (!loaded.ok() || loaded.scenarios.size() != 1) {
      throw RealRunFailed(loaded.ok() ? "the file has several cases: name one"
                                      : loaded.diagnostics.front().message);
    }
    kept_ = false;
    origin_.identity = {asked.run, loaded.scenarios.front().digest};
    const RealWorld real = [&](const Preparation& preparation, const ProgramOfRank& program) {
      return run_here(asked, preparation, program);
    };
    RunRequest request;
    request.world = World::processes;
    request.lists = asked.lists;
    request.real = &real;
    const OneRun run = run_once(loaded.scenarios.front(), request);
    if (!run.ran) {
      throw RealRunFailed(!run.world_failure.empty() ? run.world_failure
                          : run.problems.empty()     ? run.undecided
                                                     : run.problems.front().message);
    }
    const RankLog& log = run.preparation.log->ranks[static_cast<size_t>(asked.rank)];
    const auto report = encode_rank_report(run.result, log, asked.rank, origin_);
    send_frame(launcher, {{"kept", kept_}, {"report", Frame::binary(report)}});
  }

  RealRun run_here(const Case& asked, const Preparation& preparation,
                   const ProgramOfRank& program) {
    if (preparation.options.world_size != asked.world_size) {
      throw RealRunFailed("the scenario does not have the requested number of ranks");
    }
    backend::GlooOptions gloo;
    gloo.deadline = asked.hang_after;
    gloo.kernels = backend::make_libtorch_kernels;
    std::unique_ptr<JournalFile> journal;
    if (!asked.journal.empty()) {
      journal = std::make_unique<JournalFile>(asked.journal, asked.rank, asked.world_size,
                                              origin_.identity);
    }
    try {
      backend::Seat seat;
      seat.rank = asked.rank;
      seat.context =
          connections_.connected(asked.rank, asked.world_size, asked.meeting, connect_limit);
      wait_until_all_are_connected();
      seat.run = asked.run;
      seat.follower = journal.get();
      seat.wait_for_all = [this](const backend::Leftovers& left) { return agree(left); };
      seat.when_lost = [] { raise(SIGKILL); };
      RealRun real;
      tensors_.take_peak();
      real.result = backend::run_rank(preparation.options, gloo, seat, program, &kept_);
      real.result.tensor_peak.resize(static_cast<size_t>(asked.world_size));
      real.result.tensor_peak[static_cast<size_t>(asked.rank)] = tensors_.take_peak();
      if (!kept_) {
        seat.context.reset();
        connections_.drop(asked.world_size);
      }
      return real;
    } catch (const backend::WorldUnavailable& error) {
      throw RealRunFailed(error.what());
    }
  }

  // A rank that dies while others still connect to it would leave no run, instead of a finding.
  void wait_until_all_are_connected() {
    send_frame(launcher, {{"connected", true}});
    if (!receive_frame(launcher, reader_)) {
      throw FrameError("the launcher is gone");
    }
  }

  // The launcher knows what all ranks have left in their connections.
  backend::Agreement agree(const backend::Leftovers& left) {
    send_frame(launcher, {{"ended", true},
                          {"usable", left.usable},
                          {"listens", left.listens},
                          {"eager", left.eager_sent - left.eager_received}});
    const auto answer = receive_frame(launcher, reader_);
    if (!answer) {
      throw FrameError("the launcher is gone");
    }
    return {answer->at("keep"), answer->at("dismiss")};
  }

  RankOrigin origin_;
  backend::TensorMemory& tensors_;
  FrameReader reader_;
  backend::Connections connections_;
  bool kept_ = false;  ///< the connections of the last case serve the next one
};

}  // namespace

void serve_cases(const RankOrigin& origin, backend::TensorMemory& tensors) {
  Server(origin, tensors).run();
}

}  // namespace lockstep::cli
