#include "model/trainer/loop/kept_lists.hpp"

#include <utility>

namespace lockstep {

void KeptLists::begin_pass(Stage stage, bool is_sanity_check) {
  stage_ = stage;
  is_sanity_check_ = is_sanity_check;
  ++passes_[stage];
}

void KeptLists::grew(const std::string& name) {
  const bool is_sanity_check = stage_ == Stage::validate && is_sanity_check_;
  oldest_.emplace(name, Pass{stage_, passes_[stage_], is_sanity_check, false});
}

std::string KeptLists::ask_for_leftovers(const std::string& name) {
  const auto oldest = oldest_.find(name);
  if (oldest == oldest_.end() || oldest->second.number == passes_[oldest->second.stage] ||
      std::exchange(oldest->second.told, true)) {
    return "";
  }
  return oldest->second.is_sanity_check ? "outputs of the sanity check"
                                        : "outputs of earlier epochs";
}

}  // namespace lockstep
