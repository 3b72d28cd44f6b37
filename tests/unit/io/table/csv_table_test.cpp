#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <unistd.h>

#include "io/scenario/load/load.hpp"
#include "io/table/csv_table.hpp"

using namespace lockstep;

namespace csv_table_test {

namespace {

/// A file that is gone after the test.
class File {
 public:
  explicit File(const std::string& text) {
    std::string name = "/tmp/lockstep-csv-XXXXXX";
    const int descriptor = mkstemp(name.data());
    REQUIRE(descriptor >= 0);
    close(descriptor);
    path = name;
    std::ofstream(path, std::ios::binary) << text;
  }
  ~File() { std::remove(path.c_str()); }
  std::string path;
};

struct Fault {
  const char* text;
  int line;
  int column;
  const char* message;
};

}  // namespace

TEST_CASE("a CSV file gives its columns, whole numbers as such") {
  const File file("\xef\xbb\xbf score, \"target\"\r\n0.5,1\r\n1e-1, 0\r\n+2,1");
  const CsvTable read = read_csv(file.path);
  REQUIRE(read.diagnostics.empty());
  REQUIRE(read.table->rows() == 3);
  CHECK(read.table->columns()[0].name == "score");
  CHECK_FALSE(read.table->columns()[0].whole);
  CHECK(read.table->columns()[1].whole);
  const std::vector<int64_t> rows = {2, 0};
  std::vector<double> numbers(2);
  read.table->read(0, rows, numbers);
  CHECK(numbers == std::vector<double>{2, 0.5});
}

TEST_CASE("empty lines at the end of a CSV file are nobody's business") {
  const File file("score\n0.5\n0.25\n\n\n");
  const CsvTable read = read_csv(file.path);
  CHECK(read.diagnostics.empty());
  REQUIRE(read.table != nullptr);
  CHECK(read.table->rows() == 2);
}

TEST_CASE("every fault of a CSV file is reported with line and column") {
  const Fault fault = GENERATE(
      Fault{"score,target\n0.5,\n", 2, 5, "the value of `target` is missing"},
      Fault{"score,target\n0.5,1\n0.5\n", 3, 1,
            "the line has 1 value, but the first line names 2 columns"},
      Fault{"score,target\n0.5,1,2\n", 2, 1,
            "the line has 3 values, but the first line names 2 columns"},
      Fault{"score,target\nnan,1\n", 2, 1, "`score` holds nan"},
      Fault{"score,target\ninf,1\n", 2, 1, "`score` holds inf"},
      Fault{"score,target\n1e300,1\n", 2, 1, "1e300 is out of range"},
      Fault{"score,target\n1e999,1\n", 2, 1, "1e999 does not fit in fp32"},
      Fault{"score,target\n0.5,9007199254740994\n", 2, 5, "9007199254740994 is out of range"},
      Fault{"score,target\n0.5,yes\n", 2, 5, "`yes` is not a number"},
      Fault{"score,score\n1,2\n", 1, 7, "two columns are named `score`"},
      Fault{"score,2nd\n1,2\n", 1, 7, "`2nd` is not a name for a column"},
      Fault{"score,target\n,1\n", 2, 1, "the value of `score` is missing"},
      Fault{"target,epoch\n1,1\n", 1, 8,
            "no column can be named `epoch`: the name has a different meaning in programs"},
      Fault{"score\n1\n\n2\n", 3, 1, "the line is empty, but others follow"});
  const File file(fault.text);
  const CsvTable read = read_csv(file.path);
  INFO(fault.text);
  REQUIRE_FALSE(read.diagnostics.empty());
  CHECK(read.table == nullptr);
  CHECK(read.diagnostics.front().place.line == fault.line);
  CHECK(read.diagnostics.front().place.column == fault.column);
  CHECK(read.diagnostics.front().message == fault.message);
}

TEST_CASE("a file without values, a line without end and no file at all are errors") {
  CHECK(read_csv("/nowhere/values.csv").diagnostics.front().message == "file of values not found");
  const File empty("");
  CHECK(read_csv(empty.path).diagnostics.front().message == "the file of values is empty");
  const File header("score\n");
  CHECK(read_csv(header.path).diagnostics.front().message == "the file of values has no values");
  const File endless("score\n" + std::string(3 << 20, '1') + "\n1\n");
  const CsvTable read = read_csv(endless.path);
  REQUIRE(read.diagnostics.size() == 1);
  CHECK(read.diagnostics.front().place.line == 2);
  CHECK(read.diagnostics.front().message == "the line has more than 1048576 bytes");
}

TEST_CASE("values beyond what is kept in memory are read again from aside") {
  std::string text = "index,half\n";
  constexpr int64_t rows = 100'000;
  for (int64_t i = 0; i < rows; ++i) {
    text += std::to_string(i) + "," + std::to_string(i % 2) + ".5\n";
  }
  const File file(text);
  const CsvTable read = read_csv(file.path);
  REQUIRE(read.diagnostics.empty());
  REQUIRE(read.table->rows() == rows);
  const std::vector<int64_t> asked = {99'999, 0, 65'536, 65'535, 7};
  std::vector<double> numbers(asked.size());
  read.table->read(0, asked, numbers);
  for (size_t i = 0; i < asked.size(); ++i) {
    CHECK(numbers[i] == static_cast<double>(asked[i]));
  }
  read.table->read(1, asked, numbers);
  CHECK(numbers[0] == 1.5);
  CHECK(numbers[1] == 0.5);
}

TEST_CASE("the rows of a CSV file are the samples of its loader") {
  const File values("score_0,score_1,target\n0.1,0.9,1\n0.7,0.3,0\n");
  const FileReader reader = [&](const std::string&,
                                size_t) -> std::variant<std::string, FileError> {
    return "version: 1\ntrainer: {strategy: ddp, devices: 2}\ndata: {val: {values: {csv: " +
           values.path +
           "}}}\nprogram:\n  validation_step: [{log: {name: a, value: "
           "mean(score)}}, {log: {name: b, value: mean(scores)}}]\n";
  };
  const LoadedScenarios loaded = load_scenario_file("scenario.yaml", {}, reader);
  REQUIRE(loaded.diagnostics.size() == 1);  // the group `score` is known, `scores` is not
  CHECK(loaded.diagnostics.front().message == "`scores` is not defined here");
}

}  // namespace csv_table_test
