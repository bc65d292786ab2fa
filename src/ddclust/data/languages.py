"""Which languages texts are in, by their most frequent words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

AUTO, USUAL, BETWEEN = "auto", "english", "+"
SAMPLED_WORDS = 200  # of a text
LEAST_SCORE = 2  # stop words in a text: a single one may be another language's noun
LEAST_CLEAR = 0.1  # texts whose language is known, for each one whose language is not
LEAST_SHARE = 0.15  # of the texts whose language is known: a rarer language may be an error

# The words that hold sentences together. They tell languages apart, and say nothing about topics.
_WORDS = {
    "german": "der die das den dem des ein eine einer eines einem einen und oder aber nicht kein keine ist sind war waren wird"
    " werden wurde wurden sein hat haben hatte hatten kann können muss müssen soll sollen will wollen ich du er sie es wir ihr"
    " mich mir dich dir ihn ihm uns euch sich mein meine unser seine seiner seinen ihre ihrer ihren in im an am auf aus bei beim"
    " mit nach seit von vom zu zum zur über unter vor durch für gegen ohne um bis als wie wenn weil dass daß ob auch noch schon"
    " nur sehr so da dann hier dort was wer wo dieser diese dieses diesem diesen jeder jede alle mehr man nun doch denn etwa",
    "french": "le la les l un une des du de d au aux et ou mais ni ne pas plus est sont était étaient sera être été a ai as ont"
    " avait avoir eu je j tu il elle on nous vous ils elles me m te t se s lui leur leurs y en mon ma mes ton sa son ses notre"
    " nos votre vos ce c cet cette ces qui que qu quoi dont où dans sur sous avec sans pour par vers chez entre depuis pendant"
    " contre comme si aussi très bien tout toute tous toutes même autre autres deux fait peut être donc alors car selon après"
    " avant ainsi cela ça",
    "spanish": "el la los las un una unos unas de del al y e o u pero no ni que qué es son era eran fue fueron ser sido está"
    " están estaba ha han había haber he yo tú él ella ello nosotros ellos ellas usted me te se le les lo nos mi mis tu tus su"
    " sus nuestro nuestra este esta esto estos estas ese esa esos aquel en con sin por para sobre entre hasta desde hacia contra"
    " según durante como cuando donde quien cual cuyo si sí más muy ya también porque todo toda todos todas otro otra otros uno"
    " dos hay puede tiene tras ante",
    "italian": "il lo la i gli le l un uno una di del dello della dei degli delle d a al allo alla ai agli alle da dal dalla dai in"
    " nel nella nei nelle con su sul sulla sui per tra fra e ed o ma non né che chi cui è sono era erano sarà essere stato stata"
    " stati ha hanno ho aveva avere io tu lui lei noi voi loro mi ti si ci vi lo ne suo sua suoi sue mio nostro questo questa"
    " questi queste quello quella come quando dove se anche più molto già ancora così tutto tutti tutte altro altri due può"
    " dopo prima contro senza secondo perché",
    "portuguese": "o a os as um uma uns umas de do da dos das em no na nos nas ao à aos às por pelo pela pelos para com sem sob"
    " sobre entre até desde contra e ou mas não nem que quem é são era eram foi foram ser sido está estão estava tem têm tinha"
    " ter há eu tu ele ela nós eles elas você me te se lhe lhes meu minha seu sua seus suas nosso este esta isto esse essa isso"
    " aquele como quando onde qual se também mais muito já ainda todo toda todos outro outra outros dois pode após segundo"
    " porque depois",
    "dutch": "de het een en of maar niet geen is zijn was waren wordt worden werd werden heeft hebben had hadden kan kunnen moet"
    " moeten zal zullen wil ik jij je hij zij ze wij we jullie u mij me hem haar ons hun mijn jouw onze in op aan uit bij met na"
    " van voor door over onder tegen zonder om tot te ten ter als dan dat die dit deze er daar hier wat wie waar wanneer ook nog"
    " al zeer zo toen toch meer veel alle elke andere naar sinds tussen omdat",
    "danish": "og i at det en den til er som på de med han af for ikke der var mig sig men et har om vi min havde ham hun nu over"
    " da fra du ud sin dem os op man hans hvor eller hvad skal selv her alle vil blev kunne ind når være dog noget ville jo deres"
    " efter ned skulle denne end dette mit også under have dig anden hende mine alt meget sit sine vor mod disse hvis din nogle"
    " hos blive mange ad bliver hendes været jer sådan",
    "norwegian": "og i jeg det at en et den til er som på de med han av ikke der så var meg seg men har om vi min mitt ha hadde"
    " hun nå over da ved fra du ut sin dem oss opp man kan hans hvor eller hva skal selv sjøl her alle vil bli ble blitt kunne"
    " inn når være kom noen noe ville dere deres kun ja etter ned skulle denne for deg si sine sitt mot å meget hvorfor dette"
    " disse uten hvordan ingen din ditt blir samme hvilken også enn",
    "swedish": "och det att i en jag hon som han på den med var sig för så till är men ett om hade de av icke mig du henne då sin"
    " nu har inte hans honom skulle hennes där min man ej vid kunde något från ut när efter upp vi dem vara vad över än dig kan"
    " sina här ha mot alla under någon eller allt mycket sedan ju denna själv detta åt utan varit hur ingen mitt ni bli blev oss"
    " din dessa några deras blir mina samma vilken er sådan vår också",
    "finnish": "ja on ei se että en hän oli joka mutta ovat kun niin myös tai jos kuin ole olla ollut mitä minä sinä me te he"
    " tämä nämä tuo ne sen siitä siinä sitä sekä vain nyt vielä jo koska kanssa mukaan jälkeen ennen kaikki mikä joita jotka"
    " jonka jossa olisi eivät voi ovat hänen heidän minun sinun meidän niiden näiden tämän tätä noin",
    "hungarian": "a az és hogy nem is egy ez azt meg ha de mint csak már még volt van vagy el ki be fel le mert ezt kell lesz"
    " lehet pedig minden én te ő mi ti ők aki ami amely nagyon itt ott így úgy majd után előtt között alatt szerint voltak"
    " vannak sem se akkor most ezek azok által illetve való",
    "romanian": "și în de la cu pe pentru din că nu este sunt a fost o un unei unui care ce mai sau dar se sa să au ai al ale le"
    " îi îl lui ei ea el noi voi acest această aceste acestea aceasta după fi fie dacă cum când unde prin între fără spre către"
    " până decât foarte tot toate toți lor cea cel cei cele era erau va vor am are",
    "polish": "i w na z do że się nie to jest o jak ale po co tak za od przez dla był była było były być są już ten ta te tego"
    " tej tym tych oraz lub czy może gdy który która które których przy ze go mu jej ich jego ja ty on ona oni my wy tylko jeszcze"
    " więc bo także również jako pod nad między bez aby może został została",
    "czech": "a v na z do že se není je to o jak ale po co tak za od pro byl byla bylo byli být jsou už ten ta ti toho této tím"
    " těch nebo zda může když který která které kterých při ho mu její jejich jeho já ty on ona oni my vy jen ještě tedy protože"
    " také jako pod nad mezi bez aby si s k ve ze i ani však podle",
    "turkish": "ve bir bu da de için ile çok ne o ama gibi daha en kadar sonra olarak olan var yok mi mı ki her ben sen biz siz"
    " onlar onun bunu şu ya veya değil oldu olduğu ise diye göre tarafından üzerine önce hem hiç şey bütün tüm bana beni ona"
    " kendi neden nasıl",
    "indonesian": "yang dan di ke dari untuk dengan pada adalah ini itu tidak dalam akan juga atau oleh sebagai telah bisa ada"
    " saya kami kita mereka dia anda karena lebih sudah dapat seperti tersebut bahwa namun saat tetapi antara secara hanya"
    " setelah belum harus masih para",
    "russian": "и в не на я что он с со как а то все она так его но да ты к у же вы за бы по только ее мне было вот от меня еще"
    " нет о из ему теперь когда даже ну ли если уже или ни быть был него до вас опять уж вам ведь там потом себя ничего ей может"
    " они тут где есть надо ней для мы тебя их чем была сам чтоб без будто чего раз тоже под будет кто этот того потому этого"
    " какой ним здесь этом один почти мой тем чтобы нее были при эти это об также который которые которая",
    "greek": "και το να του η της με που την από για είναι σε ο οι στο θα τα των δεν τον στην τη αυτό ότι μια τους στη ένα στα"
    " τις αλλά ως αν όπως μας σας ήταν έχει έχουν είχε ή κατά μετά πριν μόνο πολύ επίσης",
    "arabic": "في من على إلى أن إن التي الذي الذين عن مع هذا هذه ذلك تلك كان كانت قد لا لم لن ما هو هي هم بعد قبل بين كل حتى أو ثم"
    " كما عند عندما أي أيضا لكن بل غير منذ خلال حيث إذا وقد وفي ومن وهو وهي فيه فيها به بها له لها منه منها عليه عليها اليوم حول"
    " دون تحت فوق نحو يكون تكون ليس كانوا هناك هنا وقال قال",
    "persian": "و در به از که این را با است برای آن یک خود تا بر کرد شد هم می نیز شده ها های ای اما یا بود هر دو پس بین ما آنها وی اند"
    " باید شود کند دارد کرده بوده نمی چه اگر همه دیگر بعد پیش روی من تو او شما",
    "hindi": "के का की में है और से को पर ने यह वह हैं था थी थे एक भी कि जो हो ही इस उस तो कर लिए गया गई गए नहीं या तक साथ अपने अपनी कुछ"
    " कोई बाद जब तब सकता रहा रही रहे हुआ हुई हुए किया दिया करने लेकिन अगर मैं हम तुम आप वे ये उन इन बहुत अब यहाँ वहाँ द्वारा",
}
# Languages of alphabets that few others with a stemmer share, for texts that are too short for stop words.
_ALPHABETS = {
    "russian": "\u0400-\u04ff",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "persian": "\u067e\u0686\u0698\u06a9\u06af\u06cc",  # letters that Arabic does not have
    "arabic": "\u0600-\u06ff",
    "hindi": "\u0900-\u097f",
    "tamil": "\u0b80-\u0bff",
    "armenian": "\u0530-\u058f",
}


@cache
def stop_words(language: str) -> frozenset[str]:
    """The most frequent words of a language, which say nothing about topics; none for languages without a list.

    Examples
    --------
    >>> "the" in stop_words("english"), "und" in stop_words("german"), len(stop_words("tamil"))
    (True, True, 0)
    """
    if language in (USUAL, "porter"):
        return ENGLISH_STOP_WORDS
    return frozenset(_WORDS.get(language, "").split())


def languages_of(texts: Iterable[Iterable[str]]) -> str:
    """The language of texts, given as words in lower case; several are joined by "+", the most frequent first.

    A text is in the language of most of its stop words, if there are at least two, or else in that of its alphabet. Languages
    of fewer than 15 % of the texts do not count. Other texts are taken for English.

    Examples
    --------
    >>> languages_of([["die", "katze", "und", "der", "hund"], ["ein", "hund", "ist", "nicht", "da"]])
    'german'
    >>> languages_of([["le", "chat", "et", "le", "chien"], ["the", "cat", "and", "the", "bird"]])
    'english+french'
    """
    known = detectable()
    of_texts = [language_of(words, known) for words in texts]
    found = Counter(language for language in of_texts if language is not None)
    n_unclear = len(of_texts) - found.total()
    if found.total() < LEAST_CLEAR * n_unclear:
        return USUAL
    least = LEAST_SHARE * found.total()
    frequent = [language for language, n in found.items() if n >= least]
    return BETWEEN.join(sorted(frequent, key=lambda name: (-found[name], name))) or USUAL


def language_of(words: Iterable[str], languages: Sequence[str]) -> str | None:
    """Which of some languages a text is in, None if its words do not say.

    Examples
    --------
    >>> language_of(["нефть", "и", "газ"], ["english", "russian"]), language_of(["oil"], ["english", "russian"])
    ('russian', None)
    """
    lists = [stop_words(language) for language in languages]
    some = list(islice(words, SAMPLED_WORDS))
    scores = [sum(word in those for word in some) for those in lists]
    most = max(scores)
    if most >= LEAST_SCORE and scores.count(most) == 1:
        return languages[scores.index(most)]
    by_alphabet = _language_of_alphabet(" ".join(some))
    return by_alphabet if by_alphabet in languages else None


def _language_of_alphabet(text: str) -> str | None:
    """The language of the alphabet of most letters, if it is one of few."""
    n_letters = sum(map(str.isalpha, text))
    counts = {language: len(letters.findall(text)) for language, letters in _alphabets().items()}
    if counts["persian"]:
        counts["persian"] = counts["arabic"]
    most = max(counts, key=lambda language: counts[language])
    return most if counts[most] > n_letters / 2 else None


@cache
def _alphabets() -> dict[str, re.Pattern[str]]:
    return {language: re.compile(f"[{letters}]") for language, letters in _ALPHABETS.items()}


@cache
def detectable() -> tuple[str, ...]:
    """The languages that can be told apart and have a stemmer here."""
    import snowballstemmer

    names = dict.fromkeys((USUAL, *_WORDS, *_ALPHABETS))
    return tuple(name for name in names if name in snowballstemmer.algorithms())
