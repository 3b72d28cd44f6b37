#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "model/core/ids.hpp"
#include "model/core/op.hpp"
#include "model/core/site.hpp"

namespace lockstep {

enum class Outcome : uint8_t { pending, ok, failed, timed_out, aborted };
std::string_view name_of(Outcome outcome);

/// The status of a ticket. `source` and `bytes` say what a receive without a source got; of all
/// others the caller knows both.
struct Status {
  Outcome outcome = Outcome::pending;
  RankId source{};
  Bytes bytes{};
};

/// Thrown on the rank that settles a ticket which failed, timed out or was aborted.
class RankFailure : public std::runtime_error {
 public:
  RankFailure(Ticket ticket, Outcome outcome, const std::string& what)
      : std::runtime_error(what), ticket_(ticket), outcome_(outcome) {}
  Ticket ticket() const { return ticket_; }
  Outcome outcome() const { return outcome_; }

 private:
  Ticket ticket_;
  Outcome outcome_;
};

/// An exception of the user's own program (`raise`, an injected fault, an error while evaluating).
/// Ends the lane; the other ranks do not learn of it, as in reality.
class ProgramException : public std::runtime_error {
 public:
  ProgramException(SiteId site, const std::string& what) : std::runtime_error(what), site_(site) {}
  SiteId site() const { return site_; }

 private:
  SiteId site_;
};

/// A device has no room for an allocation.
class OutOfMemory : public ProgramException {
 public:
  OutOfMemory(SiteId site, Bytes asked, Bytes held, Bytes capacity);
  /// Injected: nothing was asked.
  OutOfMemory(SiteId site, const std::string& what) : ProgramException(site, what) {}
  Bytes asked() const { return asked_; }
  Bytes held() const { return held_; }
  Bytes capacity() const { return capacity_; }

 private:
  Bytes asked_;
  Bytes held_;
  Bytes capacity_;
};

}  // namespace lockstep
