#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::test {

/// The files of a folder of tests/data/oracle, in the order of their names.
std::vector<std::filesystem::path> recordings_in(const std::string& folder);
nlohmann::json recording_at(const std::filesystem::path& path);

/// Fails the test case unless both have the same shape and no number differs by more than
/// `tolerance` times the greatest number of its entry: a list with one entry per iteration.
void check_agree(const char* what, const nlohmann::json& ours, const nlohmann::json& theirs,
                 double tolerance);

/// Our loss is always fp32.
nlohmann::json as_single_precision(const nlohmann::json& losses);

}  // namespace lockstep::test
