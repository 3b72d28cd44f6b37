#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "io/scenario/reader/diagnostic.hpp"

namespace lockstep {

/// A rectangle of numbers, row by row.
struct NumberFile {
  int64_t rows = 0;
  int64_t columns = 0;
  std::shared_ptr<const std::vector<double>> numbers;
};

/// Files of more bytes than this are refused.
inline constexpr size_t most_bytes_of_numbers = size_t{256} << 20;

/// Reads what numpy.savetxt writes: a line for each row, numbers separated by commas or blanks;
/// empty lines and what follows `#` do not count. `name` is for the error, which has the line and
/// column at fault.
std::variant<NumberFile, Diagnostic> read_numbers(const std::string& text, const std::string& name);

}  // namespace lockstep
