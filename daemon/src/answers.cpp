#include "answers.h"

#include <cstdint>

namespace tunerd::daemon {
namespace {

constexpr std::size_t kMost = 4096;

}  // namespace

// FNV-1a over both parts, as if they were one.
std::size_t Answers::Hash::operator()(const Question& question) const {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const std::string_view part : {question.before, question.after})
    for (const char c : part) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3ull;
  return hash;
}

bool Answers::Equal::operator()(const Question& a, const std::string& b) const {
  const std::string_view whole = b;
  return whole.size() == a.before.size() + a.after.size() && whole.substr(0, a.before.size()) == a.before &&
         whole.substr(a.before.size()) == a.after;
}

const Answers::Ready* Answers::find(const Question& question) const {
  const auto found = ready_.find(question);
  return found == ready_.end() ? nullptr : &found->second;
}

void Answers::put(const Question& question, Ready ready) {
  std::string whole = std::string(question.before) + std::string(question.after);
  if (!ready_.contains(whole)) order_.push_back(whole);
  ready_.insert_or_assign(std::move(whole), std::move(ready));
  while (order_.size() > kMost) {
    ready_.erase(order_.front());
    order_.pop_front();
  }
}

void Answers::forget(const std::string& problem) {
  std::erase_if(ready_, [&](const auto& entry) { return entry.second.problem == problem; });
  std::erase_if(order_, [this](const std::string& whole) { return !ready_.contains(whole); });
}

void Answers::clear() {
  ready_.clear();
  order_.clear();
}

std::string with_id(const Answers::Ready& ready, std::uint64_t id) {
  std::string frame = ready.frame;
  for (std::size_t i = 0; i < 8; ++i) frame[ready.id_at + i] = static_cast<char>(id >> (56 - 8 * i) & 0xFF);
  return frame;
}

}  // namespace tunerd::daemon
