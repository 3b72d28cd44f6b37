#include "rehearsal/elastic/folder_checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "io/report/checkpoint_file.hpp"
#include "rehearsal/launch/real_run.hpp"
#include "rehearsal/run/output.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* checkpoint_prefix = "rank-";
constexpr const char* checkpoint_suffix = ".checkpoint";
constexpr int64_t checkpoints_kept = 2;  // a rank may be one ahead of another

std::string checkpoint_name(int32_t rank, int64_t number) {
  return fmt::format("{}{}-{}{}", checkpoint_prefix, rank, number, checkpoint_suffix);
}

/// Rank and number of a file of this kind.
struct NamedCheckpoint {
  int32_t rank = 0;
  int64_t number = 0;
  fs::path path;
};

std::vector<NamedCheckpoint> checkpoints_in(const std::string& folder) {
  std::vector<NamedCheckpoint> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    NamedCheckpoint checkpoint{0, 0, entry.path()};
    char end = 0;
    if (name.ends_with(checkpoint_suffix) &&
        std::sscanf(name.c_str(), "rank-%d-%ld%c", &checkpoint.rank, &checkpoint.number, &end) ==
            3 &&
        name == checkpoint_name(checkpoint.rank, checkpoint.number)) {
      found.push_back(std::move(checkpoint));
    }
  }
  std::ranges::sort(found, {},
                    [](const NamedCheckpoint& one) { return std::pair(one.rank, one.number); });
  return found;
}

}  // namespace

void FolderCheckpoints::keep(int32_t rank, SavedTraining saved) {
  const std::vector<uint8_t> bytes = encode_checkpoint(saved);
  write_atomically((fs::path(folder_) / checkpoint_name(rank, saved.number)).string(),
                   std::string(bytes.begin(), bytes.end()));
  std::error_code ignored;
  fs::remove(fs::path(folder_) / checkpoint_name(rank, saved.number - checkpoints_kept), ignored);
}

std::vector<SavedTraining> FolderCheckpoints::parts_of(int32_t rank) const {
  std::vector<SavedTraining> parts;
  for (const NamedCheckpoint& checkpoint : checkpoints_in(folder_)) {
    if (checkpoint.rank != rank) {
      continue;
    }
    std::ifstream file(checkpoint.path, std::ios::binary);
    const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
    try {
      parts.push_back(checkpoint_of(bytes));
    } catch (const ReportError& error) {
      throw RealRunFailed(fmt::format("{}: {}", checkpoint.path.string(), error.what()));
    }
  }
  return parts;
}

}  // namespace lockstep::cli
