#include "rehearsal/launch/reports.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "io/file/regular_file.hpp"
#include "io/report/journal_file.hpp"
#include "io/report/rank_report.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;

std::optional<std::vector<uint8_t>> file_in(const std::string& folder, const std::string& name) {
  const fs::path path = fs::path(folder) / name;
  std::error_code error;
  if (fs::status(path, error).type() == fs::file_type::not_found) {
    return std::nullopt;
  }
  if (const std::string lack = why_not_regular(path.string()); !lack.empty()) {
    throw RealRunFailed(
        fmt::format("{}: {}; name the folder that the ranks wrote to", path.string(), lack));
  }
  const auto size = fs::file_size(path, error);
  if (!error && size > static_cast<uintmax_t>(report_bytes_max)) {
    throw RealRunFailed(fmt::format("{} is longer than any report", path.string()));
  }
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> bytes(error ? 0 : size);
  if (error ||
      !file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size))) {
    throw RealRunFailed(
        fmt::format("{} cannot be read: give this user the right to, or copy it "
                    "again from the host of its rank",
                    path.string()));
  }
  return bytes;
}

/// That all that is put together is of one run, and of this scenario.
class OneRunAlone {
 public:
  explicit OneRunAlone(uint64_t scenario) : scenario_(scenario) {}

  void add(const std::string& name, const RunIdentity& identity) {
    if (identity.scenario != scenario_) {
      throw ReportError(
          "it is of a different scenario or case, of other --set, or of a text that was changed "
          "since: "
          "compare with what the ranks were given, or run them again");
    }
    if (!first_.empty() && identity.run != run_) {
      throw ReportError("it is not of the same run as " + first_ +
                        ": start all ranks together, into an empty folder");
    }
    first_ = name;
    run_ = identity.run;
  }

 private:
  uint64_t scenario_;
  uint64_t run_ = 0;
  std::string first_;  ///< what came before
};

// A rank that was killed has left what it did until then.
void add_journal(const std::string& folder, int32_t rank, Journal& journal, OneRunAlone& run) {
  if (const auto file = file_in(folder, journal_name(rank))) {
    run.add(journal_name(rank), add_journal_file(std::as_bytes(std::span(*file)), rank, journal));
  }
}

// Its finish on the host's clock; nothing where a rank called none.
std::optional<int64_t> first_collective(const Journal& journal, int32_t rank,
                                        int64_t clock_at_start_ns) {
  std::optional<Time> first;
  for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
    journal.lane(rank, lane).for_each([&](const Row& row) {
      if (row.row != RowKind::op || !is_collective(row.kind)) {
        return;
      }
      const Completion done = journal.lane(rank, lane).completion(row.sequence);
      if (done.outcome == Outcome::ok && (!first || done.finish < *first)) {
        first = done.finish;
      }
    });
  }
  constexpr int64_t picoseconds_per_ns = 1000;
  return first ? std::optional(clock_at_start_ns + first->count() / picoseconds_per_ns)
               : std::nullopt;
}

void take_earlier(std::optional<int64_t>& earliest, std::optional<int64_t> other) {
  if (other && (!earliest || *other < *earliest)) {
    earliest = other;
  }
}

}  // namespace

std::string report_name(int32_t rank) { return fmt::format("rank-{}.report", rank); }

std::string journal_name(int32_t rank) { return fmt::format("rank-{}.journal", rank); }

RealRun gather_reports(const std::string& folder, const Preparation& preparation,
                       const EndOfSilent& end_of_silent) {
  const ReportOf report_of = [&folder](int32_t rank) { return file_in(folder, report_name(rank)); };
  return put_together(report_of, folder, preparation, end_of_silent);
}

RealRun put_together(const ReportOf& report_of, const std::string& folder,
                     const Preparation& preparation, const EndOfSilent& end_of_silent) {
  const int32_t world_size = preparation.options.world_size;
  const auto ranks = static_cast<size_t>(world_size);
  RealRun real;
  real.result.ends.resize(ranks);
  real.result.memory.resize(ranks);
  real.result.journal = std::make_unique<Journal>(world_size, preparation.options.journal);
  real.result.times_measured = true;
  std::set<std::string> libraries;
  std::set<std::string> devices;
  std::set<std::string> hosts;
  OneRunAlone one_run(preparation.scenario->digest);
  for (int32_t rank = 0; rank < world_size; ++rank) {
    std::string name = report_name(rank);
    try {
      const auto report = report_of(rank);
      if (!report) {
        real.result.ends[static_cast<size_t>(rank)] = end_of_silent(rank);
        name = journal_name(rank);
        add_journal(folder, rank, *real.result.journal, one_run);
        continue;
      }
      const RankOrigin origin = add_rank_report(*report, rank, real.result,
                                                preparation.log->ranks[static_cast<size_t>(rank)]);
      one_run.add(name, origin.identity);
      libraries.insert(origin.libraries);
      devices.insert(origin.device);
      hosts.insert(origin.host);
      take_earlier(
          real.first_collective_clock_ns,
          first_collective(std::as_const(*real.result.journal), rank, origin.clock_at_start_ns));
    } catch (const DamagedReport& error) {
      throw DamagedFile(fmt::format("{}/{}: {}", folder, name, error.what()));
    } catch (const ReportError& error) {
      throw RealRunFailed(fmt::format("{}/{}: {}", folder, name, error.what()));
    }
  }
  if (hosts.size() > 1) {
    real.first_collective_clock_ns.reset();  // every host has a clock of its own
  }
  real.basis.insert(real.basis.end(), libraries.begin(), libraries.end());
  real.basis.insert(real.basis.end(), devices.begin(), devices.end());
  real.basis.push_back(fmt::format("{} host{}", hosts.size(), hosts.size() == 1 ? "" : "s"));
  return real;
}

}  // namespace lockstep::cli
