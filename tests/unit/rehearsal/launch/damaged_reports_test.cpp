// What `compare` makes of reports and journals whose bytes are not those that ranks wrote.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <random>

#include "cli/command_line.hpp"
#include "io/report/journal_file.hpp"
#include "io/report/rank_report.hpp"
#include "io/report/report_envelope.hpp"
#include "rehearsal/launch/reports.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"
#include "tests/unit/temporary_place.hpp"

using namespace lockstep;
using namespace lockstep::cli;

namespace damaged_reports_test {

namespace {

constexpr const char* text = R"yaml(version: 1
cluster: {preset: cpu}
trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_steps: 2, num_sanity_val_steps: 0,
          limit_val_batches: 0}
data: {train: {samples: 8, batch_size: 2}}
model: {input: [4], layers: [{Linear: [4, 4]}]}
program:
  training_step: [{log: {name: train_loss, value: loss, sync_dist: true}}]
)yaml";

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void leave_journal(const Journal& journal, int32_t rank, const std::string& path,
                   const RunIdentity& identity) {
  JournalFile file(path, rank, journal.ranks(), identity);
  for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
    const LaneId id{static_cast<uint16_t>(lane)};
    journal.lane(rank, lane).for_each([&](const Row& row) {
      file.appended(id, row, {});
      if (row.row == RowKind::op) {
        file.completed({row.sequence, id}, journal.lane(rank, lane).completion(row.sequence));
      }
    });
  }
}

/// A folder with the scenario, and what its two ranks would leave: the reports of a run that equals
/// the simulation, as it is one.
class Left {
 public:
  Left() {
    write(scenario(), text);
    const Scenario loaded = load_scenario_file(scenario()).scenarios.front();
    RunRequest request;
    request.lists = true;
    request.repeats_processes = true;
    const OneRun run = run_once(loaded, request);
    const RunIdentity identity{5, loaded.digest};
    for (int32_t rank = 0; rank < 2; ++rank) {
      const auto report =
          encode_rank_report(run.result, run.preparation.log->ranks[static_cast<size_t>(rank)],
                             rank, {"none", "none", "here", 0, identity});
      write(path(report_name(rank)), {report.begin(), report.end()});
    }
    leave_journal(*run.result.journal, 1, path(journal_name(1)), identity);
  }
  std::string scenario() const { return path("scenario.yaml"); }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  Answer compare() const {
    return execute_command_line({"compare", scenario(), "--reports", folder_.path()}, {});
  }

 private:
  test::TemporaryPlace folder_;
};

bool says(const Answer& answer, const std::string& what) {
  return (answer.text + answer.diagnostics).find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("a changed byte of a report is reported by compare with file and byte and an exit code") {
  const Left left;
  const std::string name = left.path(report_name(1));
  const std::string whole = bytes_of(name);
  const Answer healthy = left.compare();
  INFO(healthy.text << healthy.diagnostics);
  REQUIRE(healthy.code == ExitCode::ok);
  for (size_t at = 0; at < whole.size(); at += 211) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x20);
    write(name, changed);
    const Answer answer = left.compare();
    INFO(at << answer.text << answer.diagnostics);
    CHECK(answer.code == ExitCode::damaged_file);
    CHECK(says(answer, "rank-1.report: damaged at byte " + std::string(at < 32 ? "0" : "32")));
    CHECK(says(answer, "run the ranks again"));
  }
  write(name, whole.substr(0, whole.size() / 2));
  CHECK(left.compare().code == ExitCode::damaged_file);
}

TEST_CASE(
    "a changed byte of a journal is reported by compare with file and byte and an exit code") {
  const Left left;
  std::filesystem::remove(left.path(report_name(1)));
  const std::string name = left.path(journal_name(1));
  const std::string whole = bytes_of(name);
  const Answer lost = left.compare();
  INFO(lost.text << lost.diagnostics);
  REQUIRE(lost.code == ExitCode::findings);  // rank 1 was lost
  for (size_t at = 0; at < 4000; at += 113) {
    std::string changed = whole;
    changed[at] = static_cast<char>(0xff ^ changed[at]);
    write(name, changed);
    const Answer answer = left.compare();
    INFO(at << answer.text << answer.diagnostics);
    CHECK(answer.code == ExitCode::damaged_file);
    CHECK(says(answer, "rank-1.journal: damaged at byte " + std::to_string(at / 56 * 56)));
  }
}

TEST_CASE("content that no rank writes never brings compare down") {
  const Left left;
  const std::string name = left.path(report_name(1));
  const std::string whole = bytes_of(name);
  const std::vector<uint8_t> content =
      content_of_report(std::vector<uint8_t>(whole.begin(), whole.end()));
  std::mt19937 random(1);
  for (int turn = 0; turn < 400; ++turn) {
    auto changed = content;
    changed[random() % changed.size()] ^= static_cast<uint8_t>(1u << random() % 8);
    const auto sealed = sealed_report(changed);
    write(name, {sealed.begin(), sealed.end()});
    const Answer answer = left.compare();
    INFO(turn << answer.text << answer.diagnostics);
    CHECK(answer.code != ExitCode::bug);
  }
}

TEST_CASE("what is no file in a folder of reports is named and not waited for") {
  const Left left;
  std::filesystem::remove(left.path(report_name(1)));
  std::filesystem::remove(left.path(journal_name(1)));
  std::filesystem::create_directory(left.path(report_name(1)));
  CHECK(says(left.compare(), "rank-1.report: this is a folder"));
  std::filesystem::remove(left.path(report_name(1)));
  REQUIRE(mkfifo(left.path(report_name(1)).c_str(), 0600) == 0);
  CHECK(says(left.compare(), "rank-1.report: this is a pipe"));
  std::filesystem::remove(left.path(report_name(1)));
  std::filesystem::create_symlink("/dev/zero", left.path(report_name(1)));
  const Answer device = left.compare();
  CHECK(says(device, "rank-1.report: this is a device"));
  CHECK(device.code == ExitCode::real_run_failed);
}

}  // namespace damaged_reports_test
