#pragma once

#include <string>

#include "rehearsal/elastic/kept_checkpoints.hpp"

namespace lockstep::cli {

/// In a folder that the ranks of an attempt share: a file for each checkpoint of a rank.
class FolderCheckpoints final : public KeptCheckpoints {
 public:
  explicit FolderCheckpoints(std::string folder) : folder_(std::move(folder)) {}
  /// Throws OutputError.
  void keep(int32_t rank, SavedTraining saved) override;
  const std::string& folder() const { return folder_; }

 protected:
  /// Those that can be read; throws RealRunFailed where one is damaged.
  std::vector<SavedTraining> parts_of(int32_t rank) const override;

 private:
  std::string folder_;
};

}  // namespace lockstep::cli
