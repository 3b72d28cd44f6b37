#include <catch2/catch.hpp>

#include "io/sweep/sweep_file.hpp"
#include "tests/unit/written_files.hpp"

using namespace lockstep;

namespace sweep_file_test {
using lockstep::test::WrittenFiles;

namespace {

SweepHeader some_header() {
  SweepHeader header;
  header.version = "1.2.3";
  header.scenario = "train.yaml:small";
  header.digest = "0123456789abcdef";
  header.settings = {"a.b=1"};
  header.keys = {"trainer.devices", "trainer.precision"};
  header.values = {{"2", "4"}, {"32-true"}};
  header.cases = 2;
  return header;
}

SweepRow some_row(int64_t number) {
  SweepRow row;
  row.number = number;
  row.values = {{"trainer.devices", "2"}, {"note", "a \"b\"\n"}};
  row.verdict = "findings";
  row.codes = {"LS303"};
  row.command = "lockstep run train.yaml";
  row.figures = {{"step_time", Value(Time(41'250'000'001))},
                 {"throughput", Value(0.1)},
                 {"memory.peak", Value(Bytes(int64_t{1} << 40))},
                 {"world_size", Value(64)},
                 {"strategy", Value("ddp")},
                 {"exposed_communication_share", Value(0.25)}};
  return row;
}

}  // namespace

TEST_CASE("a row and a header read back as they were written") {
  const std::string line = line_of(some_row(2));
  CHECK(line.find('\n') == std::string::npos);
  CHECK(line.find("\"step_time_s\":0.041250000001") != std::string::npos);
  CHECK(line.find("\"memory.peak_bytes\":1099511627776") != std::string::npos);
  const SweepRow row = row_of(line).value();
  CHECK(row.number == 2);
  CHECK(row.values == some_row(2).values);
  CHECK(row.codes == some_row(2).codes);
  for (const auto& [name, value] : some_row(2).figures) {
    INFO(name);
    CHECK(value_in(row, name) == value);
  }
  CHECK(line_of(row) == line);
  const SweepHeader header = header_of(line_of(some_header())).value();
  CHECK(difference_of(header, some_header()).empty());
  CHECK(line_of(header) == line_of(some_header()));
  CHECK_FALSE(header_of(line).has_value());
  CHECK_FALSE(row_of("{\"case\": 1}").has_value());
}

TEST_CASE("what differs between two sweeps is named") {
  const auto differs = [](const auto& change) {
    SweepHeader there = some_header();
    change(there);
    return difference_of(there, some_header());
  };
  CHECK(differs([](SweepHeader& one) {
          one.values[0] = {"2", "8"};
        }) == "the values of `trainer.devices`: 2, 8 there, 2, 4 here");
  CHECK(differs([](SweepHeader& one) { one.keys.pop_back(); }).find("varied keys") !=
        std::string::npos);
  CHECK(differs([](SweepHeader& one) { one.digest = "1"; }).find("content") != std::string::npos);
  CHECK(differs([](SweepHeader& one) { one.version = "2"; }) ==
        "the version of lockstep: 2 there, 1.2.3 here");
  CHECK(differs([](SweepHeader& one) { one.settings.clear(); }) ==
        "settings: none there, a.b=1 here");
  CHECK(differs([](SweepHeader& one) { one.values.clear(); }).find("--vary-file") !=
        std::string::npos);
  CHECK(differs([](SweepHeader& one) { one.shard = 7; }).empty());
}

TEST_CASE("a last line that is not complete is left out, and a damaged one is an error") {
  const WrittenFiles folder;
  const std::string whole = line_of(some_header()) + "\n" + line_of(some_row(1)) + "\n";
  const SweepFile good = read_sweep_file(folder.write("good", whole));
  CHECK(good.fault.empty());
  CHECK(good.lines.size() == 1);
  CHECK(good.whole_bytes == static_cast<int64_t>(whole.size()));

  const std::string second = line_of(some_row(2));
  const SweepFile torn =
      read_sweep_file(folder.write("torn", whole + second.substr(0, second.size() - 1)));
  CHECK(torn.fault.empty());
  CHECK(torn.is_torn);
  CHECK(torn.lines.size() == 1);
  CHECK(torn.whole_bytes == good.whole_bytes);

  const auto fault = [&](const std::string& text) {
    return read_sweep_file(folder.write("bad", text)).fault;
  };
  CHECK(fault(whole + "{}\n" + second + "\n") == "line 3 is no row of this sweep");
  CHECK(fault(whole + line_of(some_row(3)) + "\n") == "line 3 is no row of this sweep");
  CHECK(fault(second + "\n").find("line 1 ") == 0);
  SweepRow other = some_row(1);
  other.verdict = "hangs";
  CHECK(fault(whole + line_of(some_row(1)) + "\n").empty());
  CHECK(fault(whole + line_of(other) + "\n") == "line 3 differs from an earlier row of case 1");
  SweepHeader shard = some_header();
  shard.shards = 2;
  CHECK(fault(line_of(shard) + "\n" + second + "\n") ==
        "line 2 is case 2, which is not of shard 1/2");
  CHECK(read_sweep_file(folder.write("empty", "")).fault.empty());
}

TEST_CASE("every case belongs to one shard") {
  SweepHeader header = some_header();
  header.shards = 3;
  for (int64_t number = 1; number <= 7; ++number) {
    int64_t owners = 0;
    for (header.shard = 1; header.shard <= 3; ++header.shard) {
      owners += is_in_shard(header, number) ? 1 : 0;
    }
    CHECK(owners == 1);
  }
}

}  // namespace sweep_file_test
