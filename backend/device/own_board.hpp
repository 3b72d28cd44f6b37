#pragma once

#include <map>

#include "backend/device/board.hpp"

namespace lockstep::backend {

/// The board of a world of one rank, in its own memory.
class OwnBoard final : public Board {
 public:
  void post(const std::string& key, const std::vector<uint8_t>& word) override {
    words_[key] = word;
  }
  std::optional<std::vector<uint8_t>> look(const std::string& key) override {
    const auto found = words_.find(key);
    return found == words_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::map<std::string, std::vector<uint8_t>> words_;
};

}  // namespace lockstep::backend
