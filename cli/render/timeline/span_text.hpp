#pragma once

#include <string>

#include "cli/render/group_names.hpp"
#include "cli/render/timeline/span.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// What slices and tracks are called, and what their `args` hold.
class SpanText {
 public:
  explicit SpanText(const Rehearsal& rehearsal);

  /// "forward fc1", "all_reduce", "step 3", "training_step", "wait for all_gather".
  std::string name(const Span& span) const;
  /// "step", "hook", "wait"; of an operation its kind: "compute", "all_reduce".
  std::string category(const Span& span) const;
  /// The fields of `args`, without the braces; may be empty.
  std::string arguments(const Span& span) const;

 private:
  std::string operation_name(const Row& row) const;
  std::string wait_name(const Row& row) const;
  std::string layer_name(const Row& row) const;
  std::string communication_arguments(const Span& span) const;
  std::string site_arguments(SiteId id) const;

  const Journal& journal_;
  const Network* network_;
  GroupNames groups_;
};

/// "compute", "communication of device 1", "sends on the host", "host thread 0".
std::string track_name(int32_t track, const Journal& journal);

}  // namespace lockstep::cli
