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
  int64_t layers = 0;  ///< of a transformer
  /// FLOPs of a sample as Narayanan et al. 2021 (appendix) count them, with those that run again;
  /// 0: the network is no GPT.
  double published_flops = 0;
};

/// Dimensions come from the row, else from the publication of the network that it names.
/// `tensor_ranks` compute each layer together.
RowModel model_of(const ThroughputRow& row, int64_t tensor_ranks);

/// All letters in lower case.
std::string lower_case(std::string text);
bool contains(const std::string& text, std::string_view part);

}  // namespace lockstep::cli
