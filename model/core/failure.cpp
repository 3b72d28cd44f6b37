#include "model/core/failure.hpp"

#include <fmt/core.h>

#include "model/core/units_text.hpp"

namespace lockstep {

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::pending: return "pending";
    case Outcome::ok: return "ok";
    case Outcome::failed: return "failed";
    case Outcome::timed_out: return "timed_out";
    case Outcome::aborted: return "aborted";
  }
  return "?";
}

OutOfMemory::OutOfMemory(SiteId site, Bytes asked, Bytes held, Bytes capacity)
    : ProgramException(site, fmt::format("out of memory: {} asked, {} of {} in use", text_of(asked),
                                         text_of(held), text_of(capacity))),
      asked_(asked),
      held_(held),
      capacity_(capacity) {}

}  // namespace lockstep
