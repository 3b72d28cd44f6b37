#include "io/table/number_file.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace number_file_test {

namespace {

NumberFile numbers_of(const std::string& text) {
  auto read = read_numbers(text, "w.csv");
  REQUIRE(std::holds_alternative<NumberFile>(read));
  return std::get<NumberFile>(std::move(read));
}

Diagnostic fault_of(const std::string& text) {
  auto read = read_numbers(text, "w.csv");
  REQUIRE(std::holds_alternative<Diagnostic>(read));
  return std::get<Diagnostic>(std::move(read));
}

}  // namespace

TEST_CASE("numbers are read as numpy.savetxt writes them") {
  // numpy.savetxt("w.csv", [[1, -2.5], [3e-3, 4]]), its default format and delimiter.
  const NumberFile file = numbers_of(
      "# header\n1.000000000000000000e+00 -2.500000000000000000e+00\n"
      "3.000000000000000062e-03 4.000000000000000000e+00\n");
  CHECK(file.rows == 2);
  CHECK(file.columns == 2);
  CHECK(*file.numbers == std::vector<double>{1, -2.5, 3e-3, 4});
  CHECK(*numbers_of("1,2, 3\r\n\n+4,5,6").numbers == std::vector<double>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("a faulty file of numbers is named with line and column") {
  const Diagnostic text = fault_of("1 2\n3 four\n");
  CHECK(text.place == SourcePlace{"w.csv", 2, 3});
  CHECK(text.message == "`four` is not a finite number");
  CHECK(text.length == 4);
  CHECK(fault_of("1 2\n\n3\n").message == "this line has 1 numbers, the lines before have 2");
  CHECK(fault_of("1 2\n\n3\n").place.line == 3);
  CHECK(fault_of("1 nan").message == "`nan` is not a finite number");
  CHECK(fault_of("1 1e999").message == "`1e999` is not a finite number");
  CHECK(fault_of("# nothing\n").message == "the file holds no numbers");
}

}  // namespace number_file_test
