#pragma once

#include <string>

#include "io/table/throughput_table.hpp"

namespace lockstep::cli {

/// The model of a row in the words of the scenario format.
struct RowModel {
  std::string family{};
  std::string yaml{};  ///< the section `model`, indented; empty: `why_not` says why
  std::string why_not{};
  int64_t seq_len = 1;  ///< tokens of a sample; of images 1
  bool is_image = false;
};

/// Dimensions come from the row, else from the publication of the network that it names.
RowModel model_of(const ThroughputRow& row);

/// All letters in lower case.
std::string lower_case(std::string text);
bool contains(const std::string& text, std::string_view part);

}  // namespace lockstep::cli
