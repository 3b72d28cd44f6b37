#include "io/scenario/load/json_places.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace lockstep {

JsonPlaces::JsonPlaces(const std::string& file, const std::string& text)
    : text_(&text), file_(file), lines_{0} {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') {
      lines_.push_back(i + 1);
    }
  }
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  at_ = text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  take_value();
  text_ = nullptr;
}

SourcePlace JsonPlaces::of_key(const Path& path) const {
  const auto found = offsets_.find(path);
  return place_at(found == offsets_.end() ? 0 : found->second.key);
}

SourcePlace JsonPlaces::of_value(const Path& path) const {
  const auto found = offsets_.find(path);
  return place_at(found == offsets_.end() ? 0 : found->second.value);
}

std::optional<SourcePlace> JsonPlaces::of_repeated_key() const {
  return repeated_key_ ? std::optional(place_at(*repeated_key_)) : std::nullopt;
}

SourcePlace JsonPlaces::place_at(size_t offset) const {
  const auto line = std::ranges::upper_bound(lines_, offset);
  return {file_, static_cast<int>(line - lines_.begin()),
          static_cast<int>(offset - *(line - 1)) + 1};
}

void JsonPlaces::skip_space() {
  at_ = std::min(text_->find_first_not_of(" \t\r\n", at_), text_->size());
}

// A parser of its own for the text between the quotes, which may hold escapes.
std::string JsonPlaces::take_text() {
  const size_t begin = at_++;
  while (at_ < text_->size() && (*text_)[at_] != '"') {
    at_ += (*text_)[at_] == '\\' ? 2 : 1;
  }
  at_ = std::min(at_ + 1, text_->size());
  return nlohmann::json::parse(text_->substr(begin, at_ - begin)).get<std::string>();
}

void JsonPlaces::take_object() {
  ++at_;
  std::set<std::string> keys;
  for (skip_space(); at_ < text_->size() && (*text_)[at_] != '}'; skip_space()) {
    const size_t key = at_ + 1;
    path_.push_back(take_text());
    if (!keys.insert(path_.back()).second && !repeated_key_) {
      repeated_key_ = key;
    }
    at_ = text_->find(':', at_) + 1;
    skip_space();
    offsets_.try_emplace(path_, Offsets{key, at_});
    take_value();
    path_.pop_back();
    skip_space();
    at_ += (*text_)[at_] == ',' ? 1 : 0;
  }
  ++at_;
}

// Of objects within only the end counts: entries of lists are no part of a path.
void JsonPlaces::take_list() {
  ++at_;
  for (skip_space(); at_ < text_->size() && (*text_)[at_] != ']'; skip_space()) {
    take_value();
    skip_space();
    at_ += (*text_)[at_] == ',' ? 1 : 0;
  }
  ++at_;
}

void JsonPlaces::take_value() {
  skip_space();
  const char first = (*text_)[at_];
  if (first == '{') {
    take_object();
  } else if (first == '[') {
    take_list();
  } else if (first == '"') {
    take_text();
  } else {
    at_ = std::min(text_->find_first_of(",]} \t\r\n", at_), text_->size());
  }
}

}  // namespace lockstep
