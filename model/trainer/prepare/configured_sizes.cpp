#include "model/trainer/prepare/configured_sizes.hpp"

namespace lockstep {

ConfiguredSizes configured_sizes(const std::vector<NamedArgument>& given) {
  ConfiguredSizes sizes;
  for (const NamedArgument& argument : given) {
    if (argument.name == "seq_len") {
      sizes.size.seq_len = std::get<int64_t>(argument.value);
    } else if (argument.name == "target_len") {
      sizes.size.target_len = std::get<int64_t>(argument.value);
    } else if (argument.name == "num_classes") {
      sizes.size.num_classes = std::get<int64_t>(argument.value);
    } else if (const auto* dropout = std::get_if<double>(&argument.value);
               argument.name == "dropout" && dropout != nullptr) {
      sizes.size.dropout = *dropout;
    } else {
      sizes.strange = argument.name;
      return sizes;
    }
  }
  return sizes;
}

}  // namespace lockstep
