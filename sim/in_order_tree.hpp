#pragma once

#include <bit>
#include <cstddef>

namespace lockstep::sim {

/// The in-order binary tree over positions first..last, from 1: odd ones are leaves (Sanders, Speck
/// and Traeff 2009). Calls edge(parent, child), parents first.
template <class Edge>
void in_order_tree(size_t first, size_t last, const Edge& edge) {
  const auto root_of = [](size_t from, size_t to) {
    size_t step = std::bit_floor(to);
    while ((to & ~(step - 1)) < from) {
      step /= 2;
    }
    return to & ~(step - 1);
  };
  const size_t root = root_of(first, last);
  if (first < root) {
    edge(root, root_of(first, root - 1));
    in_order_tree(first, root - 1, edge);
  }
  if (root < last) {
    edge(root, root_of(root + 1, last));
    in_order_tree(root + 1, last, edge);
  }
}

}  // namespace lockstep::sim
