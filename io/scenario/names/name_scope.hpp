#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace lockstep {

/// The names that some path to a statement has bound. Binding is remembered, so that a branch can
/// be taken back without a copy.
class NameScope {
 public:
  using Names = std::set<std::string, std::less<>>;

  explicit NameScope(const Names& names) : names_(names) {}

  void bind(const std::string& name) {
    if (names_.insert(name).second) {
      bound_.push_back(name);
    }
  }
  void unbind(const std::string& name) {
    names_.erase(name);
    unbound_.push_back(name);
  }
  /// Binds again what was unbound since this many names had been: some way there has not.
  size_t unbound() const { return unbound_.size(); }
  void restore(size_t count) {
    for (; unbound_.size() > count; unbound_.pop_back()) {
      names_.insert(unbound_.back());
    }
  }
  bool contains(const std::string& name) const { return names_.count(name) > 0; }
  const Names& names() const { return names_; }

  size_t mark() const { return bound_.size(); }
  /// Unbinds what was bound since the mark, and gives it.
  std::vector<std::string> hide_since(size_t mark) {
    std::vector<std::string> hidden(bound_.begin() + static_cast<ptrdiff_t>(mark), bound_.end());
    for (const std::string& name : hidden) {
      names_.erase(name);
    }
    bound_.resize(mark);
    return hidden;
  }

 private:
  Names names_;
  std::vector<std::string> bound_;
  std::vector<std::string> unbound_;
};

}  // namespace lockstep
