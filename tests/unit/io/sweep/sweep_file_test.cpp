#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "io/sweep/sweep_file.hpp"
#include "tests/unit/written_files.hpp"

using namespace lockstep;

namespace sweep_file_test {
using lockstep::test::WrittenFiles;
using Json = nlohmann::ordered_json;

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
  row.values = {{"trainer.devices", "2"}, {"trainer.precision", "a \"b\"\n"}};
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
  const SweepRow row = std::get<SweepRow>(row_of(line));
  CHECK(row.number == 2);
  CHECK(row.values == some_row(2).values);
  CHECK(row.codes == some_row(2).codes);
  for (const auto& [name, value] : some_row(2).figures) {
    INFO(name);
    CHECK(value_in(row, name) == value);
  }
  CHECK(line_of(row) == line);
  const SweepHeader header = std::get<SweepHeader>(header_of(line_of(some_header())));
  CHECK(difference_of(header, some_header()).empty());
  CHECK(line_of(header) == line_of(some_header()));
  CHECK(std::get<std::string>(header_of(line)) == "is not the first line of a sweep");
  CHECK(std::get<std::string>(row_of("{\"case\": 1}")) == "`values` is missing");
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
  CHECK(fault(whole + "{}\n" + second + "\n") ==
        "line 3 is no row of this sweep: `case` is missing");
  CHECK(fault(whole + line_of(some_row(3)) + "\n") ==
        "line 3 is no row of this sweep: `case` is 3, and there are 2");
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

TEST_CASE("a field of the wrong JSON type is named, and what it should be") {
  const auto row_with = [](const char* pointer, const Json& value) {
    Json json = Json::parse(line_of(some_row(1)));
    json[Json::json_pointer(pointer)] = value;
    return json.dump();
  };
  const auto says = [&](const char* pointer, const Json& value) {
    const auto read = row_of(row_with(pointer, value));
    const auto* fault = std::get_if<std::string>(&read);
    return fault == nullptr ? "" : *fault;
  };
  CHECK(says("/message", "as it is").empty());
  CHECK(says("/figures/throughput", 3).empty());
  CHECK(says("/figures/throughput", nullptr).empty());
  // The library of JSON converts each of these.
  CHECK(says("/case", true) == "`case` is true, not a whole number");
  CHECK(says("/case", 1.5) == "`case` is the number 1.5, not a whole number");
  CHECK(says("/case", 0) == "`case` is 0, and at least 1 is needed");
  CHECK(says("/case", 18446744073709551615U) ==
        "`case` is the number 18446744073709551615, not a whole number");
  CHECK(says("/values", Json::array({"2"})) == "`values` is a list, not an object");
  CHECK(says("/values", "2") == "`values` is text, not an object");
  CHECK(says("/values/trainer.devices", 2) == "`values.trainer.devices` is the number 2, not text");
  CHECK(says("/codes", "LS303") == "`codes` is text, not a list of texts");
  CHECK(says("/codes/0", 303) == "`codes[0]` is the number 303, not text");
  CHECK(says("/verdict", nullptr) == "`verdict` is null, not text");
  CHECK(says("/figures", Json::array()) == "`figures` is a list, not an object");
  CHECK(says("/figures/step_time_s", "fast") == "`figures.step_time_s` is text, not a number");
  CHECK(says("/figures/step_time_s", true) == "`figures.step_time_s` is true, not a number");
  CHECK(says("/figures/memory.peak_bytes", 1e300) ==
        "`figures.memory.peak_bytes` is the number 1e+300, not a whole number");
  CHECK(says("/figures/world_size", 1.5) ==
        "`figures.world_size` is the number 1.5, not a whole number");
  CHECK(says("/figures/strategy", 7) == "`figures.strategy` is the number 7, not text");
}

TEST_CASE("a first line whose fields are of the wrong type or disagree is no sweep") {
  const auto says = [](const char* name, const Json& value) {
    Json json = Json::parse(line_of(some_header()));
    json[name] = value;
    const auto read = header_of(json.dump());
    const auto* fault = std::get_if<std::string>(&read);
    return fault == nullptr ? "" : *fault;
  };
  const std::string no = "is not the first line of a sweep: ";
  CHECK(says("digest", "other").empty());
  CHECK(says("cases", "2") == no + "`cases` is text, not a whole number");
  CHECK(says("cases", 2.0) == no + "`cases` is the number 2.0, not a whole number");
  CHECK(says("keys", "trainer.devices") == no + "`keys` is text, not a list of texts");
  CHECK(says("values", Json::array({"2"})) == no + "`values[0]` is text, not a list of texts");
  CHECK(says("shards", 0) == no + "`shards` is 0, and at least 1 is needed");
  CHECK(says("shards", 2'000'000) == no + "more than 1000000 cases or shards");
  CHECK(says("sweep", 2) == "is of format 2, and this program reads 1");
  CHECK(says("keys", Json::array({"a"})) == no + "`keys`, `values` and `cases` disagree");
  CHECK(says("cases", 3) == no + "`keys`, `values` and `cases` disagree");
  CHECK(says("keys", Json::array()) == no + "`keys` is empty");
}

TEST_CASE("a row that sets a key which its sweep does not vary is none of the sweep") {
  const WrittenFiles folder;
  SweepRow row = some_row(1);
  row.values.emplace_back("trainer.max_steps", "3");
  const std::string path =
      folder.write("rows", line_of(some_header()) + "\n" + line_of(row) + "\n");
  CHECK(read_sweep_file(path).fault ==
        "line 2 is no row of this sweep: it does not vary `trainer.max_steps`");
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
