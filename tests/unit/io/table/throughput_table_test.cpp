#include "io/table/throughput_table.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/written_files.hpp"

using namespace lockstep;

namespace throughput_table_test {

namespace {

ThroughputTable read_throughputs(const std::string& text) {
  const test::WrittenFiles files;
  return read_throughput_table(files.write("figures.csv", text));
}

void refused_throughputs(const std::string& text, int line, int column,
                         const std::string& message) {
  const ThroughputTable table = read_throughputs(text);
  INFO(text);
  REQUIRE(table.diagnostics.size() == 1);
  CHECK(table.diagnostics.front().place.line == line);
  CHECK(table.diagnostics.front().place.column == column);
  CHECK(table.diagnostics.front().message.find(message) != std::string::npos);
  CHECK(!table.diagnostics.front().remedy.empty());
}

}  // namespace

TEST_CASE("published throughputs: quoted cells, comments and numbers in words") {
  const ThroughputTable table = read_throughputs(
      "# Source: a page\n"
      "row_id,gpu,model,gpus,samples_per_s,vocab,notes\n"
      "a-1,V100,BERT,8,12.5,~250k,\"one, \"\"two\"\"\"\n"
      "a-2,V100,BERT,,,,\n");
  REQUIRE(table.diagnostics.empty());
  REQUIRE(table.rows.size() == 2);
  const ThroughputRow& row = table.rows.front();
  CHECK(row.source == "figures");
  CHECK(row.line == 3);
  CHECK(row.id() == "a-1");
  CHECK(row.whole("gpus") == 8);
  CHECK(row.number("samples_per_s") == 12.5);
  CHECK(!row.number("vocab"));
  CHECK(row.text("notes") == "one, \"two\"");
  CHECK(row.text("framework").empty());
  CHECK(!table.rows[1].whole("gpus"));
}

TEST_CASE("published throughputs: what is wrong is named with its place") {
  refused_throughputs("row_id,gpu,gpuss\na,V100,1\n", 1, 12, "unknown column `gpuss`");
  refused_throughputs("row_id,gpu,gpu\na,V100,1\n", 1, 12, "column `gpu` twice");
  refused_throughputs("row_id,model\na,BERT\n", 1, 1, "no column `gpu`");
  refused_throughputs("row_id,gpu,step_s\na,V100,fast\n", 2, 8, "`fast` is not a number");
  refused_throughputs("row_id,gpu,step_s\na,V100,-1\n", 2, 8, "`-1` is not a number");
  refused_throughputs("row_id,gpu,step_s\na,V100,nan\n", 2, 8, "`nan` is not a number");
  refused_throughputs("row_id,gpu,gpus\na,V100,1.5\n", 2, 8, "not a whole number above 0");
  refused_throughputs("row_id,gpu,gpus\na,V100,0\n", 2, 8, "not a whole number above 0");
  refused_throughputs("row_id,gpu\na\n", 2, 1, "needs 2 cells and has 1");
  refused_throughputs("row_id,gpu\na,\"V100\n", 2, 1, "does not end");
  refused_throughputs("row_id,gpu\na,V100\na,V100\n", 3, 1, "row_id `a` twice");
  refused_throughputs("row_id,gpu\n", 0, 1, "no measured rows");
}

}  // namespace throughput_table_test
