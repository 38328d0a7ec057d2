"""Words that the cases of `structured` are drawn from; plain ones, so that a model fails on the form, not on a name."""

from __future__ import annotations

PEOPLE = (
    "Anna Berg",
    "Omar Haddad",
    "Lucy Stone",
    "Piet de Vries",
    "Mina Park",
    "Tom Weller",
    "Eva Lind",
    "Juan Ortega",
    "Nora Quist",
    "Ivan Petrov",
    "Sara Bloom",
    "Karl Jansen",
    "Rosa Marino",
    "Hugo Blanc",
    "Lena Fischer",
    "David Okafor",
    "Greta Holm",
    "Paul Novak",
    "Alice Moreau",
    "Yusuf Demir",
)
ITEMS = (
    "lamp",
    "chair",
    "kettle",
    "blanket",
    "notebook",
    "bicycle",
    "teapot",
    "backpack",
    "mirror",
    "hammer",
    "candle",
    "basket",
    "umbrella",
    "pillow",
    "suitcase",
    "whistle",
    "ladder",
    "bucket",
)
CITIES = (
    "Oslo",
    "Lisbon",
    "Cairo",
    "Kyoto",
    "Lima",
    "Dublin",
    "Nairobi",
    "Vienna",
    "Toronto",
    "Athens",
    "Bergen",
    "Quito",
    "Krakow",
    "Hanoi",
    "Porto",
    "Denver",
    "Perth",
    "Seville",
    "Tunis",
    "Riga",
    "Ghent",
    "Malmo",
    "Turin",
    "Osaka",
)
CURRENCIES = ("EUR", "USD", "GBP", "JPY", "CHF", "SEK", "NOK", "CAD", "AUD")
SUBJECTS = (
    "lamp repair",
    "bread recipes",
    "hiking boots",
    "night trains",
    "garden sheds",
    "piano lessons",
    "used cameras",
    "sail boats",
    "wool carpets",
    "bird houses",
    "chess clubs",
    "solar panels",
    "city museums",
    "ski schools",
)
TITLES = (
    "Budget review",
    "Team lunch",
    "Design review",
    "Sales call",
    "Safety briefing",
    "Book club",
    "Project kickoff",
    "Board meeting",
    "Hiring interview",
    "Release planning",
    "Yoga class",
    "Parents evening",
)
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
COLOURS = ("red", "blue", "green", "yellow", "black", "white", "brown", "orange", "purple", "grey")
THINGS = ("car", "door", "bench", "roof", "fence", "boat", "house", "bus", "table", "wall")
MESSAGES = {
    "complaint": (
        (
            "The {item} arrived broken and nobody answers the phone.",
            "I waited three weeks and the {item} never came.",
            "The {item} stopped working after a day. I want my money back.",
            "Your {item} is far too loud.",
            "This is the second wrong {item} that you have sent me.",
            "The {item} smells bad and the box was open.",
            "I am not happy: the {item} has a deep scratch.",
        )
    ),
    "question": (
        (
            "Do you also sell the {item} in green?",
            "How long does it take to send a {item} to Spain?",
            "Can I return the {item} without the box?",
            "Is the {item} safe for children?",
            "When will the {item} be in stock again?",
            "Which size of {item} do I need for a small room?",
            "Does the {item} come with a guarantee?",
        )
    ),
    "praise": (
        (
            "The {item} is wonderful, thank you so much!",
            "Great service, and the best {item} I ever had.",
            "I love my new {item}.",
            "Perfect {item}, it came a day early. Well done!",
            "Everybody in the family enjoys the {item}. Thank you!",
            "Such a beautiful {item}. Five stars.",
            "The {item} works like a dream.",
        )
    ),
}
REMARKS = (
    "The shop opens at nine.",
    "The new shelf is next to the door.",
    "The delivery van is back on the road.",
    "The printer has paper again.",
    "The heating in the hall was mended.",
    "The post came early this morning.",
    "The floor in the back was cleaned.",
    "The window display changes next week.",
    "The coffee machine is on.",
    "The keys hang in the office.",
    "The lift is out of order until noon.",
    "The yard gate stays closed at night.",
)
REPLIES = ("I wrote that down.", "Good to know.", "All right.", "Thank you.", "Understood.")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
