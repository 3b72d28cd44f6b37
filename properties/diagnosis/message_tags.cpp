#include "properties/diagnosis/message_tags.hpp"

#include <fmt/core.h>

namespace lockstep {

std::string tags_apart(const OperationTable& table, const std::vector<size_t>& operations) {
  for (const size_t sent : operations) {
    const Operation& send = table[sent];
    for (const size_t received : operations) {
      const Operation& recv = table[received];
      if (send.row.kind == OpKind::send && recv.row.kind == OpKind::recv &&
          send.communicator == recv.communicator && send.row.peer == recv.rank &&
          recv.source == send.rank && send.row.tag != recv.row.tag) {
        return fmt::format("rank {} sends with tag {}, and rank {} receives with tag {}", send.rank,
                           send.row.tag, recv.rank, recv.row.tag);
      }
    }
  }
  return "";
}

}  // namespace lockstep
