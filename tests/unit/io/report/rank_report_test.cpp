#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>

#include "io/report/rank_report.hpp"
#include "io/report/report_envelope.hpp"

using namespace lockstep;

namespace rank_report_test {

namespace {

RunResult empty_result(int32_t ranks) {
  RunResult result;
  result.ends.resize(static_cast<size_t>(ranks));
  result.memory.resize(static_cast<size_t>(ranks));
  JournalOptions options;
  options.lists = true;
  result.journal = std::make_unique<Journal>(ranks, options);
  return result;
}

// Rank 1 of 2: an all_reduce that completed, a promise, a send that never did, in two lanes.
RunResult written() {
  RunResult result = empty_result(2);
  LaneJournal& lane = result.journal->lane(1, LaneId{0});
  const Slice slice{BufferId{4}, DType::fp32, 2, 8};
  const Ticket after{7, LaneId{0}};
  Row row;
  row.kind = OpKind::all_reduce;
  row.dtype = DType::fp32;
  row.bytes = 32;
  row.sequence = 1;
  row.site = site_id("train.yaml:3:5");
  row.lists = lane.append_lists({{&after, 1}, {}, {&slice, 1}, {}, {}});
  lane.append(row);
  lane.complete(1, {Time(10), Time(20), Time(30), Outcome::ok, {}});
  Row promise;
  promise.row = RowKind::promise;
  promise.sequence = 2;
  lane.append(promise);
  Row send;
  send.kind = OpKind::send;
  send.peer = 0;
  send.sequence = 1;
  LaneJournal& second = result.journal->lane(1, LaneId{1});
  second.append(send);
  second.complete(1, {Time(5), Time(6), {}, Outcome::timed_out, {}});
  result.journal->groups[1] = {{}, {77, std::vector<int32_t>{1, 0}}};
  result.hung = true;
  result.total_time = Time(1234);
  result.operations = 2;
  result.ends[1] = {RankEnd::Kind::stuck, site_id("x"), "waits", false};
  result.waiting = {{1, LaneId{1}, Until::any, {{1, LaneId{1}}}}};
  DeviceMemory memory;
  memory.peak = Bytes(512);
  memory.peak_by_purpose[0] = Bytes(512);
  memory.peak_buffer = BufferId{9};
  result.memory[1][DeviceId{0}] = memory;
  result.struck_faults = {{3, 1}};
  return result;
}

RankLog written_log() {
  RankLog log;
  log.metrics = {{"loss", 0.25}, {"unknown", std::numeric_limits<double>::quiet_NaN()}};
  log.findings = {{"LS201", site_id("y"), "too early", "wait", 3, "self.scores"}};
  log.handed_over["allreduce.a"] = {2, site_id("y")};
  log.samples.push_back({"train", 1, 0, std::vector<int64_t>{5, 3, 1}});
  log.final_parameters = {Values::of(DType::bf16, {1, -2.5}),
                          Values::of(DType::int64, {1LL << 40})};
  log.monitors = {{"EarlyStopping", "loss", site_id("z"), {{2, 6, 0.5, true, false}}}};
  log.checkpoint_bytes = Bytes(1092);
  log.checkpoints = {{"loss", site_id("c"), false, "a.ckpt", 0.25, {{"a.ckpt", 0.25}}, "last", 2}};
  log.stopped_epoch = 4;
  log.logger.rows = {{3, {{"loss", 0.5}, {"epoch", 0}}}, {1, {{"val_loss_step", 2}}}};
  log.logger.row_count = 12;
  log.progress_bar = {{"loss", 0.5}};
  log.learning_rates = {{0.5, 0.25}, {1}};
  log.steps = 9;
  log.known_differences = {{"it sends less", "send all", DifferenceKind::of_replicas_for_now}};
  log.compression_error = 0.25;
  log.statement_limit_reached = true;
  return log;
}

}  // namespace

TEST_CASE("what a rank left is read as it was written") {
  const RunResult left = written();
  const RankLog log = written_log();
  RunResult read = empty_result(2);
  RankLog read_log;
  const RankOrigin origin = add_rank_report(
      encode_rank_report(left, log, 1, {"LibTorch 2.11.0", "EPYC", "node-3"}), 1, read, read_log);
  CHECK(origin.host == "node-3");
  CHECK(differences(*left.journal, *read.journal).empty());
  CHECK(read.journal->lanes(1) == 2);
  const LaneJournal& lane = std::as_const(*read.journal).lane(1, 0);
  const RowLists lists = lane.lists_of(lane.row(0));
  REQUIRE(lists.after.size() == 1);
  CHECK(lists.after[0] == Ticket{7, LaneId{0}});
  REQUIRE(lists.writes.size() == 1);
  CHECK(lists.writes[0] == Slice{BufferId{4}, DType::fp32, 2, 8});
  CHECK(lists.reads.empty());
  CHECK(lists.splits.empty());
  CHECK(lane.completion(1).finish == Time(30));
  CHECK(std::as_const(*read.journal).lane(1, 1).completion(1).outcome == Outcome::timed_out);
  CHECK(read.journal->communicator(1, GroupId{1}) == 77);
  CHECK(read.hung);
  CHECK(read.total_time == Time(1234));
  CHECK(read.ends[1].kind == RankEnd::Kind::stuck);
  CHECK(read.ends[1].message == "waits");
  REQUIRE(read.waiting.size() == 1);
  CHECK(read.waiting[0].tickets == std::vector<Ticket>{{1, LaneId{1}}});
  CHECK(read.memory[1].at(DeviceId{0}).peak == Bytes(512));
  CHECK(read.memory[1].at(DeviceId{0}).peak_buffer == BufferId{9});
  CHECK(read.struck_faults == left.struck_faults);
  CHECK(read_log.metrics.at("loss") == 0.25);
  CHECK(std::isnan(read_log.metrics.at("unknown")));
  CHECK((read_log.findings.at(0).times == 3 && read_log.findings.at(0).list == "self.scores"));
  CHECK(read_log.handed_over.at("allreduce.a").times == 2);
  CHECK(read_log.handed_over.at("allreduce.a").site == site_id("y"));
  CHECK(read_log.samples.at(0).samples.list() == std::vector<int64_t>{5, 3, 1});
  CHECK(read_log.final_parameters == log.final_parameters);
  REQUIRE(read_log.monitors.size() == 1);
  CHECK(read_log.monitors[0].site == site_id("z"));
  CHECK(read_log.monitors[0].turns.at(0).value == 0.5);
  CHECK(read_log.monitors[0].turns.at(0).own);
  CHECK_FALSE(read_log.monitors[0].turns.at(0).done);
  CHECK(read_log.checkpoint_bytes.value().own == Bytes(1092));
  REQUIRE(read_log.checkpoints.size() == 1);
  CHECK(read_log.checkpoints[0].best == "a.ckpt");
  CHECK(read_log.checkpoints[0].best_score == 0.25);
  CHECK(read_log.checkpoints[0].kept == log.checkpoints[0].kept);
  CHECK(read_log.checkpoints[0].saved == 2);
  CHECK(read_log.stopped_epoch == 4);
  REQUIRE(read_log.logger.rows.size() == 2);
  CHECK(read_log.logger.rows.back().step == 1);
  CHECK(read_log.logger.rows.front().values == log.logger.rows.front().values);
  CHECK(read_log.logger.row_count == 12);
  CHECK(read_log.progress_bar == log.progress_bar);
  CHECK(read_log.learning_rates == log.learning_rates);
  CHECK(read_log.steps == 9);
  CHECK(read_log.known_differences == log.known_differences);
  CHECK(read_log.compression_error == log.compression_error);
  CHECK(read_log.statement_limit_reached);
}

TEST_CASE("a report of another rank or another run is refused") {
  const auto report = encode_rank_report(written(), written_log(), 1, {});
  RankLog log;
  RunResult other_size = empty_result(3);
  CHECK_THROWS_AS(add_rank_report(report, 1, other_size, log), ReportError);
  RunResult other_rank = empty_result(2);
  CHECK_THROWS_AS(add_rank_report(report, 0, other_rank, log), ReportError);
}

TEST_CASE("any changed byte of a report is reported with its place") {
  const auto report = encode_rank_report(written(), written_log(), 1, {});
  constexpr size_t head_bytes = 32;
  auto damaged = report;
  for (size_t at = 0; at < report.size(); ++at) {
    for (int change = 1; change < 256; ++change) {
      damaged[at] = report[at] ^ static_cast<uint8_t>(change);
      RunResult result = empty_result(2);
      RankLog log;
      try {
        add_rank_report(damaged, 1, result, log);
        FAIL("byte " << at << " changed by " << change << " passed unseen");
      } catch (const DamagedReport& error) {
        const std::string place = at < head_bytes ? "at byte 0:" : "at byte 32:";
        if (std::string(error.what()).find(place) == std::string::npos) {
          FAIL("byte " << at << ": " << error.what());
        }
      }
    }
    damaged[at] = report[at];
  }
}

TEST_CASE("a report cut anywhere or followed by more is reported as damaged") {
  const auto report = encode_rank_report(written(), written_log(), 1, {});
  RankLog log;
  for (size_t length = 0; length < report.size(); ++length) {
    RunResult result = empty_result(2);
    CHECK_THROWS_AS(add_rank_report(std::span(report).first(length), 1, result, log),
                    DamagedReport);
  }
  auto longer = report;
  longer.push_back(0);
  RunResult result = empty_result(2);
  CHECK_THROWS_AS(add_rank_report(longer, 1, result, log), DamagedReport);
}

TEST_CASE("a report of many blocks names the one that changed") {
  RankLog log = written_log();
  log.samples.push_back({"train", 0, 0, std::vector<int64_t>(100'000, 7)});  // 800,000 bytes
  const auto report = encode_rank_report(written(), log, 1, {});
  constexpr size_t block = 4 + 65536;
  REQUIRE(report.size() > 12 * block);
  for (size_t at = 32; at < report.size(); at += 9973) {
    auto damaged = report;
    damaged[at] ^= 1;
    RunResult result = empty_result(2);
    const std::string place = "at byte " + std::to_string(32 + (at - 32) / block * block) + ":";
    CHECK_THROWS_WITH(add_rank_report(damaged, 1, result, log), Catch::Contains(place));
  }
  auto swapped = report;  // blocks in a different order have the right bytes
  std::swap_ranges(swapped.begin() + 32 + 3 * block, swapped.begin() + 32 + 4 * block,
                   swapped.begin() + 32 + 5 * block);
  RunResult result = empty_result(2);
  CHECK_THROWS_AS(add_rank_report(swapped, 1, result, log), DamagedReport);
}

TEST_CASE("content of a report that no rank writes is refused or read and never more") {
  const auto content = content_of_report(encode_rank_report(written(), written_log(), 1, {}));
  for (size_t at = 0; at < content.size(); ++at) {
    for (const int change : {0x01, 0x5a, 0x80, 0xff}) {
      auto changed = content;
      changed[at] ^= static_cast<uint8_t>(change);
      RunResult result = empty_result(2);
      RankLog log;
      try {
        add_rank_report(sealed_report(changed), 1, result, log);
        for (int32_t lane = 0; lane < result.journal->lanes(1); ++lane) {
          std::as_const(*result.journal).lane(1, lane).for_each([](const Row& row) {
            text_of(row);
          });
        }
      } catch (const ReportError&) {
        // whatever else it throws fails the test
      }
    }
  }
}

TEST_CASE("lists in lists without end are refused before anybody follows them") {
  // 0x81: a list of one element (RFC 8949, section 3).
  const std::vector<uint8_t> nested(10'000'000, 0x81);
  CHECK_THROWS_AS(check_cbor(nested), ReportError);
  RunResult result = empty_result(2);
  RankLog log;
  CHECK_THROWS_AS(add_rank_report(sealed_report(nested), 1, result, log), ReportError);
  // A list of 2^60 elements, and one whose length is missing.
  CHECK_THROWS_AS(check_cbor(std::vector<uint8_t>{0x9b, 0x10, 0, 0, 0, 0, 0, 0, 0}), ReportError);
  CHECK_THROWS_AS(check_cbor(std::vector<uint8_t>{0x9b, 0x10}), ReportError);
  CHECK_NOTHROW(check_cbor(std::vector<uint8_t>{0x82, 0x01, 0xa1, 0x61, 'a', 0xf6}));
}

TEST_CASE("a report of the format without checksums is reported as such") {
  // {"format": "lockstep rank report", "version": 5} in CBOR.
  std::vector<uint8_t> old = {0xa2, 0x66, 'f', 'o', 'r', 'm', 'a', 't', 0x74};
  for (const char letter : std::string("lockstep rank report")) {
    old.push_back(static_cast<uint8_t>(letter));
  }
  old.insert(old.end(), {0x67, 'v', 'e', 'r', 's', 'i', 'o', 'n', 0x05});
  RunResult result = empty_result(2);
  RankLog log;
  CHECK_THROWS_WITH(add_rank_report(old, 1, result, log), Catch::Contains("of format 5"));
}

}  // namespace rank_report_test
