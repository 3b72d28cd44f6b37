#include "model/user_program/started_work.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "model/user_program/exposure.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

StartedWork::StartedWork(const StatementContext& context, const TensorStore& tensors)
    : settings_(context.settings), log_(context.log), tensors_(tensors) {}

std::shared_ptr<PendingWork> StartedWork::start(const Statement& statement, Ticket ticket,
                                                StreamId on) {
  auto work = std::make_shared<PendingWork>(PendingWork{ticket, on});
  work->site = site_of(statement);
  work->call = name_of(statement.kind);
  work->is_message = is_message(statement);
  if (works_.size() >= works_to_sort_) {
    std::erase_if(works_, [](const auto& known) { return known->waited || known->told; });
    works_to_sort_ = 1024 + 2 * works_.size();
  }
  works_.push_back(work);
  return work;
}

// With NCCL a host that has waited for the device has waited for the work too. Seen with
// torch 2.11: a message of Gloo whose handle goes before it was sent never comes.
void StartedWork::tell_unwaited() {
  for (const std::shared_ptr<PendingWork>& work : works_) {
    const bool synchronised =
        !settings_.gloo && tensors_.known_finished(work->stream, work->ticket);
    if (!work->waited && !work->told && !synchronised) {
      const bool may_be_lost = settings_.gloo && work->is_message;
      log_.add({"LS403", work->site,
                fmt::format("{} is started with async and never waited for{}", work->call,
                            may_be_lost ? "; Gloo loses the message if its handle goes first" : ""),
                "give it a name with `as`, and `wait` for that before its data is used or changed, "
                "and before the program ends"});
    }
  }
  works_.clear();
}

}  // namespace lockstep
