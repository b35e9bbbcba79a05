// A hash table from whole numbers to values, in one piece of memory: for what happens at every record of a profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lamina {

// Robin Hood hashing: an entry is never further from its place than those it passed. Numbers that come in order lie in order,
// so that what is used together is together, until they turn out to lie badly; then, or if asked for, they are mixed.
template <typename Key, typename Value>
class FlatMap {
 public:
  enum class Keys { kInOrder, kMixed };
  FlatMap() = default;
  explicit FlatMap(Keys keys) : mixed_(keys == Keys::kMixed) {}

  // Pointers hold until the next entry comes or goes.
  Value* find(Key key) {
    if (slots_.empty()) return nullptr;
    size_t i = home(key);
    for (uint32_t distance = 1; slots_[i].distance >= distance; ++distance, i = next(i)) {
      if (slots_[i].key == key) return &slots_[i].value;
    }
    return nullptr;
  }
  const Value* find(Key key) const { return const_cast<FlatMap*>(this)->find(key); }

  // The value, and whether it is new.
  std::pair<Value*, bool> try_emplace(Key key) {
    if (Value* known = find(key)) return {known, false};
    if ((size_ + 1) * 4 > slots_.size() * 3) rehash(slots_.empty() ? kFirstSlots : slots_.size() * 2);
    auto [value, distance] = insert({key, 1, {}});
    if (distance <= kFar || mixed_) return {value, true};
    mixed_ = true;
    rehash(slots_.size());
    return {find(key), true};
  }
  Value& operator[](Key key) { return *try_emplace(key).first; }

  void erase(Key key) {
    Value* value = find(key);
    if (!value) return;
    size_t hole = static_cast<size_t>(reinterpret_cast<char*>(value) - reinterpret_cast<char*>(&slots_[0].value)) / sizeof(Slot);
    for (size_t i = next(hole); slots_[i].distance > 1; hole = i, i = next(i)) {
      slots_[hole] = std::move(slots_[i]);
      --slots_[hole].distance;
    }
    slots_[hole] = {};
    --size_;
  }

  void clear() { *this = FlatMap(mixed_ ? Keys::kMixed : Keys::kInOrder); }
  // Room for so many.
  void reserve(size_t count) {
    size_t slots = slots_.empty() ? kFirstSlots : slots_.size();
    while (count * 4 > slots * 3) slots *= 2;
    if (slots != slots_.size()) rehash(slots);
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Calls `visit(key, value)` for each, in no order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.distance != 0) visit(slot.key, slot.value);
    }
  }

 private:
  static constexpr size_t kFirstSlots = 16;
  static constexpr uint32_t kFar = 64;

  struct Slot {
    Key key{};
    uint32_t distance = 0;  // from its place, from 1; 0: free
    Value value{};
  };

  size_t next(size_t i) const { return (i + 1) & (slots_.size() - 1); }
  size_t home(Key key) const {
    uint64_t hash = key;
    if (mixed_) {
      hash *= 0x9e3779b97f4a7c15u;
      hash ^= hash >> 32;
    }
    return hash & (slots_.size() - 1);
  }

  // The new value's place, and how far from home an entry had to go.
  std::pair<Value*, uint32_t> insert(Slot entry) {
    Value* placed = nullptr;
    size_t i = home(entry.key);
    for (; slots_[i].distance != 0; i = next(i), ++entry.distance) {
      if (slots_[i].distance >= entry.distance) continue;
      std::swap(slots_[i], entry);
      if (!placed) placed = &slots_[i].value;
    }
    uint32_t distance = entry.distance;
    slots_[i] = std::move(entry);
    ++size_;
    return {placed ? placed : &slots_[i].value, distance};
  }

  void rehash(size_t slots) {
    std::vector<Slot> old(slots);
    old.swap(slots_);
    size_ = 0;
    for (Slot& slot : old) {
      if (slot.distance == 0) continue;
      slot.distance = 1;
      insert(std::move(slot));
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
  bool mixed_ = false;
};

}  // namespace lamina
