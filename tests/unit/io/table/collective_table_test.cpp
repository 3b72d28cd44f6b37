#include "io/table/collective_table.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/written_files.hpp"

using namespace lockstep;

namespace collective_table_test {

namespace {

CollectiveTable read(const std::string& text) {
  const test::WrittenFiles files;
  return read_collective_table(files.write("measured.txt", text));
}

void refused(const std::string& text, int line, int column, const std::string& message) {
  const CollectiveTable table = read(text);
  INFO(text);
  REQUIRE(table.diagnostics.size() == 1);
  CHECK(table.diagnostics.front().place.line == line);
  CHECK(table.diagnostics.front().place.column == column);
  CHECK(table.diagnostics.front().message.find(message) != std::string::npos);
}

}  // namespace

TEST_CASE("collective measurements: the output of nccl-tests as it is printed") {
  const CollectiveTable table = read(
      "# nThread 1 nGpus 1\n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
      "           0             0     float     sum      -1     5.00    0.00    0.00      0\n"
      "           8             2     float     sum      -1    12.25    0.00    0.00      0\n"
      "     1048576        262144     float     sum      -1   1788.7    0.59    1.10    N/A\n"
      "# Out of bounds values : 0 OK\n");
  REQUIRE(table.diagnostics.empty());
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].bytes == 8);
  CHECK(table.rows[0].time_us == 12.25);
  CHECK(table.rows[1].bytes == 1048576);
  CHECK(table.rows[1].line == 5);
}

TEST_CASE("collective measurements: CSV finds its columns by name") {
  const CollectiveTable table = read("# source=x\nname,time_us_oop,size_bytes\r\na, 12.5 ,64\r\n");
  REQUIRE(table.diagnostics.empty());
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].bytes == 64);
  CHECK(table.rows[0].time_us == 12.5);
}

TEST_CASE("collective measurements: what is wrong has its place") {
  refused("size,time_us\n1,2\n", 1, 1, "no column `size_bytes`");
  refused("size_bytes,time\n1,2\n", 1, 1, "no column `time_us`");
  refused("size_bytes,time_us\n8,1.5\n16\n", 3, 1, "needs at least 2 columns and has 1");
  refused("size_bytes,time_us\n8,fast\n", 2, 3, "`fast` is not a time");
  refused("size_bytes,time_us\n8,0\n", 2, 3, "`0` is not a time");
  refused("size_bytes,time_us\n8,nan\n", 2, 3, "`nan` is not a time");
  refused("size_bytes,time_us\n-8,1\n", 2, 1, "`-8` is not a size");
  refused("size_bytes,time_us\n8,1\n8,1\n", 3, 1, "sizes must rise");
  refused("# nothing\n", 0, 1, "no measured sizes");
  refused("8 2 float sum\n", 1, 1, "needs at least 6 columns and has 4");
}

TEST_CASE("collective measurements: a file that is not there, and a folder") {
  const test::WrittenFiles files;
  CHECK(read_collective_table("/nowhere/measured.txt").diagnostics.front().message ==
        "the file cannot be read");
  const std::string file = files.write("a", "");
  CHECK(read_collective_table(file.substr(0, file.size() - 2)).diagnostics.front().message ==
        "this is a folder, not a file");
}

}  // namespace collective_table_test
