#include <catch2/catch.hpp>

#include "rehearsal/sweep/csv_cells.hpp"
#include "rehearsal/sweep/sweep_cases.hpp"
#include "tests/unit/written_files.hpp"

using namespace lockstep::cli;

namespace sweep_cases_test {
using lockstep::test::WrittenFiles;

namespace {

using Texts = std::vector<std::string>;

std::string refusal(const Texts& arguments) {
  try {
    SweepCases::of_grid(arguments);
  } catch (const SweepError& error) {
    CHECK(error.code() == ExitCode::usage);
    return error.what();
  }
  return "";
}

std::string refusal_of_file(const std::string& text) {
  const WrittenFiles folder;
  try {
    SweepCases::of_file(folder.write("a.csv", text));
  } catch (const SweepError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a grid has all combinations and the last key changes fastest") {
  const SweepCases cases = SweepCases::of_grid({"a.b=1,2", "c=x, y ,z"});
  REQUIRE(cases.count() == 6);
  CHECK(cases.settings_of(1) == Texts{"a.b=1", "c=x"});
  CHECK(cases.settings_of(2) == Texts{"a.b=1", "c=y"});
  CHECK(cases.settings_of(4) == Texts{"a.b=2", "c=x"});
  CHECK(cases.settings_of(6) == Texts{"a.b=2", "c=z"});
  CHECK(cases.first_with_each_value(0) == std::vector<int64_t>{1, 4});
  CHECK(cases.first_with_each_value(1) == std::vector<int64_t>{1, 2, 3});
  CHECK(cases.some_with(1, 2, 100) == std::vector<int64_t>{3, 6});
  CHECK(cases.some_with(0, 1, 2) == std::vector<int64_t>{4, 5});
  CHECK(cases.digest_of_list().empty());
}

TEST_CASE("commas within brackets and braces and quotes do not separate values") {
  const SweepCases cases =
      SweepCases::of_grid({"trainer.strategy=ddp,{FSDPStrategy: {a: 1, b: [2, 3]}},'x,y'"});
  CHECK(cases.values().front() == Texts{"ddp", "{FSDPStrategy: {a: 1, b: [2, 3]}}", "'x,y'"});
}

TEST_CASE("keys and values that cannot be varied are refused") {
  CHECK(refusal({"devices"}).find("has no values") != std::string::npos);
  CHECK(refusal({"=1,2"}).find("has no key") != std::string::npos);
  CHECK(refusal({"a="}).find("has no values") != std::string::npos);
  CHECK(refusal({"a=1,,2"}).find("value 2 of 3 is empty") != std::string::npos);
  CHECK(refusal({"a=1,2,1"}).find("the value 1 is there twice") != std::string::npos);
  CHECK(refusal({"a=1", "a=2"}).find("the key `a` is there twice") != std::string::npos);
  std::string thousand = "1";
  for (int value = 2; value <= 1001; ++value) {
    thousand += "," + std::to_string(value);
  }
  CHECK(refusal({"a=" + thousand, "b=" + thousand}).find("more than 1000000 cases") !=
        std::string::npos);
}

TEST_CASE("a list of cases comes from a file and an empty cell sets nothing") {
  const WrittenFiles folder;
  const std::string path =
      folder.write("cases.csv",
                   "\xef\xbb\xbf"
                   "trainer.devices,\"verify.world_sizes\"\r\n2,\"[2,4]\"\r\n\r\n4,\n2,[8]\n");
  const SweepCases cases = SweepCases::of_file(path);
  REQUIRE(cases.count() == 3);
  CHECK(cases.keys() == Texts{"trainer.devices", "verify.world_sizes"});
  CHECK(cases.settings_of(1) == Texts{"trainer.devices=2", "verify.world_sizes=[2,4]"});
  CHECK(cases.settings_of(2) == Texts{"trainer.devices=4"});
  CHECK(cases.settings_of(3) == Texts{"trainer.devices=2", "verify.world_sizes=[8]"});
  CHECK(cases.first_with_each_value(0) == std::vector<int64_t>{1, 2});
  CHECK(cases.digest_of_list().size() == 16);
  const std::string other = folder.write("other.csv", "trainer.devices,verify.world_sizes\n2,4\n");
  CHECK(SweepCases::of_file(other).digest_of_list() != cases.digest_of_list());
}

TEST_CASE("a file that is no list of cases is refused with the line") {
  CHECK(refusal_of_file("a,b\n1,2\n1,2,3\n").find("line 3 has 3 cells, and there are 2 keys") !=
        std::string::npos);
  CHECK(refusal_of_file("a\n").find("has no cases") != std::string::npos);
  CHECK(refusal_of_file("a,\n1,2\n").find("key 2 is empty") != std::string::npos);
  CHECK(refusal_of_file("a,b\n\"1,2\n").find("line 2: a quote is not closed") != std::string::npos);
  CHECK(refusal_of_file("a,b\n\"1\"x,2\n").find("line 2: `x` follows a quoted cell") !=
        std::string::npos);
  CHECK_THROWS_AS(SweepCases::of_file("/there/is/no/such.csv"), SweepError);
}

TEST_CASE("a cell of CSV reads back whatever it holds") {
  for (const std::string text : {"plain", "a,b", "say \"no\"", "two\nlines", " blank ", ""}) {
    std::string fault;
    const std::vector<CsvLine> lines = csv_cells("x," + csv_cell(text) + "\n", fault);
    CHECK(fault.empty());
    REQUIRE(lines.size() == 1);
    CHECK(lines.front().cells == Texts{"x", text});
  }
}

}  // namespace sweep_cases_test
