#pragma once

#include <string>
#include <vector>

#include "properties/logged/metric_is_global.hpp"

namespace lockstep::cli {

/// A key that is logged for steps and for epochs has a name for each: "loss" of "loss_step", and
/// "loss/dataloader_idx_1" of "loss_epoch/dataloader_idx_1".
std::string without_fork(const std::string& key);

/// Whether what a logger has by this name is made of a loss that is not computed, so that its value
/// says nothing.
bool is_of_stand_in(const std::vector<GlobalMetric>& logged, const std::string& key);

}  // namespace lockstep::cli
