#pragma once

#include <string_view>

#include "model/strategy/local_model/forward_part.hpp"
#include "model/strategy/local_model/routed_tokens.hpp"

namespace lockstep {

/// How rows of tokens come to the experts that have them, and back.
class ExpertRows : ForwardPart {
 public:
  using ForwardPart::ForwardPart;

  /// Says how many rows come. The host waits for it: it sizes what arrives.
  Ticket send_numbers(Rank& rank, const ExpertRun& run);
  /// What the host has read: who sends how much to whom. A training adds to `routing`.
  void learn_sizes(Rank& rank, ExpertRun& run, const LayerTurn& turn, RoutedTokens& routing);
  /// Who gets nothing has memory for a number that nobody fills. Without values it is there while
  /// the rows travel; what autograd keeps of them is among what the layer saves.
  Slice memory_of(Rank& rank, const Slice& like);
  /// Memory for the way of rows whose memory on this rank is there.
  RowsOnTheWay way_of(Rank& rank, const Slice& at_home, const ExpertRun& run);
  void free_way(Rank& rank, const RowsOnTheWay& rows);
  Ticket bring(Rank& rank, const ExpertRun& run, const RowsOnTheWay& rows, std::string_view site);
  Ticket return_home(Rank& rank, const ExpertRun& run, const RowsOnTheWay& rows,
                     std::string_view site);

 private:
  void read_numbers(Rank& rank, ExpertRun& run, const LayerTurn& turn, RoutedTokens& routing);
  Ticket send(Rank& rank, const ExpertRun& run, const Slice& from, const Slice& to, bool to_experts,
              std::string_view site);
  const ExpertRanks& ranks() const { return state_.division().experts; }
};

}  // namespace lockstep
