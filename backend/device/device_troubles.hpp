#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "model/program/run.hpp"

namespace lockstep::backend {

/// What went wrong on the device of one rank, and to whom it is reported.
class DeviceTroubles {
 public:
  /// `tell`: as DeviceSeat::tell; may be empty.
  explicit DeviceTroubles(std::function<void(const std::string&)> tell) : tell_(std::move(tell)) {}

  /// What the device or its library said; each text is reported once.
  void tell(const std::string& text) {
    if (tell_ && !text.empty() && told_.insert(text).second) {
      tell_(text);
    }
  }
  /// Called where an exception of an operation is being handled: the first one is what the rank
  /// ends with.
  void note_broken(SiteId site) {
    if (!broken_) {
      broken_ = end_of(std::current_exception());
      if (broken_->site == no_site) {
        broken_->site = site;
      }
    }
  }
  /// How the rank ends whose lanes have ended so.
  const RankEnd& end_after(const RankEnd& lanes) const {
    const bool ended = lanes.kind == RankEnd::Kind::finished || lanes.kind == RankEnd::Kind::failed;
    return ended && broken_ ? *broken_ : lanes;
  }

 private:
  std::function<void(const std::string&)> tell_;
  std::set<std::string> told_;
  std::optional<RankEnd> broken_;
};

}  // namespace lockstep::backend
